package main

import (
	"runtime"
	"time"
)

const (
	figAfterPanic = "others served after the panic"
	figAfterHang  = "first value after the hang began"
	figAllServed  = "all served after the hang began"
	figAtOnce     = "loads at once, one server"
	figSecondWave = "longest call, second wave"
)

// panickingLoader: the first load of a key panics.
var panickingLoader = scenario{
	Name:  "panic",
	About: "the first loader panics after 200 ms while 8 processes × 50 callers wait; theirs take 200 ms",
	Run:   runPanic,
	Targets: []target{
		atMost(figAfterPanic, 210, "one load + 10 ms"),
		atMost(figOthersFailed, 0, "no errors"),
	},
}

func runPanic(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{
		Callers: 1, Keys: []string{b.key("panic")}, Calls: 1,
		Timeout: b.patience(), Bound: b.patience(),
		Load: LoadSpec{Takes: 200 * time.Millisecond},
	}
	first := job
	first.Load.Ending = Panic
	leader, others, err := f.follow(b.ctx, first, job, callersPerServer, f.servers...)
	if err != nil {
		return nil, err
	}
	calls, stuck, err := others.Wait()
	if err != nil {
		return nil, err
	}
	own, ownStuck, err := leader.Wait()
	if err != nil {
		return nil, err
	}
	loads := f.Loads()
	r := &result{Contender: contender, Curve: latenciesOf(calls, 0).points()}
	r.outcomes(calls)
	r.add(figLoads, count, float64(len(loads)))
	r.add(figOthersFailed, count, float64(failures(calls)))
	addLastServed(r, figAfterPanic, calls, loads[0].End)
	if err := f.checkLoads(b.ctx, r, 5, loads, 2); err != nil {
		return nil, err
	}
	r.check(lawOneLoad(loads), lawReturned(5, stuck+ownStuck), lawServed(5, calls), lawPanicked(own))
	return r, nil
}

// lawPanicked: a panic reaches the caller who brought the loader.
func lawPanicked(own []Call) []violation {
	for _, c := range own {
		if !c.Panicked {
			return broken(5, "the panic did not reach its caller, who got: %q", c.Err)
		}
	}
	return nil
}

// hangingLoader: the first load never ends, whatever its context says.
var hangingLoader = scenario{
	Name:  "hang",
	About: "the first loader never returns; load deadline 1 s; 8 processes × 50 callers ask until they are served; their loaders take 200 ms",
	Run:   runHang,
	Targets: []target{
		atMost(figAfterHang, 1210, "load deadline + one load + 10 ms"),
	},
}

func runHang(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{LoadTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{
		Callers: 1, Keys: []string{b.key("hang")}, UntilOK: true,
		For: b.patience(), Timeout: b.patience(), Bound: b.patience(), Pace: 10 * time.Millisecond,
		Load: LoadSpec{Takes: 200 * time.Millisecond},
	}
	first := job
	first.Load.Ending, first.Load.Only = Hang, 1
	leader, others, err := f.follow(b.ctx, first, job, callersPerServer, f.servers...)
	if err != nil {
		return nil, err
	}
	calls, stuck, err := others.Wait()
	if err != nil {
		return nil, err
	}
	own, ownStuck, err := leader.Wait()
	if err != nil {
		return nil, err
	}
	loads, r := f.Loads(), &result{Contender: contender, Curve: latenciesOf(calls, 0).points()}
	r.outcomes(calls)
	began := loads[0].Start
	if c, ok := firstServed(calls); ok {
		r.addTime(figAfterHang, c.End.sub(began))
		addLastServed(r, figAllServed, calls, began)
	} else {
		r.addNever(figAfterHang, millis)
		r.addNever(figAllServed, millis)
	}
	r.add(figLoads, count, float64(len(loads)))
	r.add(figErrors, count, float64(failures(calls)))
	r.add("stuck callers", count, float64(stuck+ownStuck))
	r.check(lawReturned(5, stuck+ownStuck), lawSomeoneServed(5, calls), lawSomeoneServed(5, own), lawOneLoad(loads[1:]))
	return r, nil
}

// tooLarge: the store refuses the value.
var tooLarge = scenario{
	Name:  "too-large",
	About: "a value of 2 MB in a Redis that takes 1 MB; 8 processes × 50 callers, twice; the loader takes 200 ms",
	Run:   runTooLarge,
	Targets: []target{
		atMost(figLongest, 410, "two loads + 10 ms"),
		atMost(figSecondWave, 410, "two loads + 10 ms"),
	},
}

func runTooLarge(b *bench, contender string) (*result, error) {
	server, err := b.startRedis("--proto-max-bulk-len", "1mb")
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	f, err := b.fleetOn(server.Addr, contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{
		Callers: callersPerServer, Keys: []string{b.key("too-large")}, Calls: 1,
		Timeout: b.patience(), Bound: b.patience(),
		Load: LoadSpec{Takes: 200 * time.Millisecond, Size: 2 << 20},
	}
	calls, stuck, err := f.Do(b.ctx, job)
	if err != nil {
		return nil, err
	}
	var again []Call
	alsoStuck := 0
	if failures(calls) < len(calls) { // else it gets no better, and takes long
		if again, alsoStuck, err = f.Do(b.ctx, job); err != nil {
			return nil, err
		}
	}
	loads, all := f.Loads(), latenciesOf(calls, 0)
	r := &result{Contender: contender, Curve: all.points()}
	r.outcomes(calls)
	r.addQuantile(figP50, all, 0.5)
	r.addQuantile(figLongest, all, 1)
	r.addQuantile(figSecondWave, latenciesOf(again, 0), 1)
	r.add(figLoads, count, float64(len(loads)))
	most := 0
	for _, own := range loadsByWorker(loads) {
		most = max(most, mostAtOnce(own))
	}
	r.add(figAtOnce, count, float64(most))
	calls = append(calls, again...)
	r.add(figErrors, count, float64(failures(calls)))
	r.check(lawReturned(7, stuck+alsoStuck), lawServed(7, calls), lawReal(calls, loads), lawAtOnce(loads, 4*runtime.GOMAXPROCS(0)))
	return r, nil
}
