package main

import (
	"slices"
	"time"
)

const (
	outage      = 3 * time.Second
	failingLoad = 200 * time.Millisecond

	figFailedLoads = "failed loads"
	figOverLoad    = "calls over one load + 10 ms"
	figRecovered   = "value after the outage"
	figFilled      = "filled after the first failure"

	// coolDown is the default of cachefill, less what clocks may differ by.
	coolDown = 950 * time.Millisecond
)

// failingEverywhere: the source of all servers is down for a while.
var failingEverywhere = scenario{
	Name:  "failing",
	About: "8 processes × 50 callers; the loader fails after 200 ms, on all servers, for 3 s",
	Run:   runFailing,
	Targets: []target{
		atMost(figFailedLoads, 6, "one load per cool-down"),
		atMost(figLongest, ms(failingLoad+10*time.Millisecond), "one load time + 10 ms"),
	},
}

func runFailing(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	run, err := f.Begin(b.ctx, Job{
		Callers: callersPerServer, Keys: []string{b.key("failing")},
		For: 2 * outage, Pace: 20 * time.Millisecond,
		Load: LoadSpec{Takes: failingLoad, Ending: Fail, Until: outage},
	})
	if err != nil {
		return nil, err
	}
	calls, stuck, err := run.Wait()
	if err != nil {
		return nil, err
	}
	loads, all := f.Loads(), latenciesOf(calls, 0)
	r := &result{Contender: contender, Curve: all.points()}
	r.outcomes(calls)
	r.add(figFailedLoads, count, float64(len(failed(loads))))
	r.addQuantile(figP50, all, 0.5)
	r.addQuantile(figP99, all, 0.99)
	r.addQuantile(figLongest, all, 1)
	r.add(figOverLoad, count, float64(all.over(failingLoad+10*time.Millisecond)))
	if c, ok := firstServed(calls); ok {
		r.addTime(figRecovered, c.End.sub(run.start.add(outage)))
	} else {
		r.addNever(figRecovered, millis)
	}
	r.check(lawOneLoad(loads), lawCoolDown(loads, coolDown), lawReturned(6, stuck), lawSomeoneServed(6, calls))
	return r, nil
}

func failed(loads []Load) []Load {
	return slices.DeleteFunc(slices.Clone(loads), func(l Load) bool { return l.Err == "" })
}

// firstServed returns the call that got the first value.
func firstServed(calls []Call) (first Call, ok bool) {
	for _, c := range calls {
		if c.ok() && (!ok || c.End < first.End) {
			first, ok = c, true
		}
	}
	return first, ok
}

// failingOne: one server cannot load, the others can.
var failingOne = scenario{
	Name:  "failing-one",
	About: "8 processes × 50 callers; the loader of one server always fails, after 50 ms, and that server is the first to load",
	Run:   runFailingOne,
	Targets: []target{
		atMost(figFilled, 2000, "another server fills within two cool-downs"),
	},
}

func runFailingOne(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	key := b.key("failing-one")
	job := Job{
		Callers: callersPerServer, Keys: []string{key}, For: pick(b, 5*time.Second, 3*time.Second), Pace: 20 * time.Millisecond,
		Load: LoadSpec{Takes: 50 * time.Millisecond, Ending: Fail},
	}
	broken, err := f.Begin(b.ctx, job, f.servers[0])
	if err != nil {
		return nil, err
	}
	if _, err := f.AwaitLoad(b.ctx, key); err != nil {
		return nil, err
	}
	job.Load.Ending = Value
	calls, stuck, err := f.Do(b.ctx, job, f.servers[1:]...)
	if err != nil {
		return nil, err
	}
	more, alsoStuck, err := broken.Wait()
	if err != nil {
		return nil, err
	}
	calls, stuck = append(calls, more...), stuck+alsoStuck
	r := &result{Contender: contender, Curve: latenciesOf(calls, 0).points()}
	r.outcomes(calls)
	reportFailingOne(r, f.Loads(), calls, stuck)
	return r, nil
}

func reportFailingOne(r *result, loads []Load, calls []Call, stuck int) {
	filled, ok := firstServed(calls)
	if ok {
		r.addTime(figFilled, max(filled.End.sub(loads[0].End), 0))
	} else {
		r.addNever(figFilled, millis)
	}
	r.add(figFailedLoads, count, float64(len(failed(loads))))
	r.add(figLoads, count, float64(len(loads)))
	r.add(figErrors, count, float64(failures(calls)))
	r.addQuantile(figLongest, latenciesOf(calls, 0), 1)
	r.check(lawOneLoad(loads), lawCoolDown(loads, coolDown), lawReturned(6, stuck),
		lawSomeoneServed(6, calls), lawSitsOut(loads), lawServed(6, servedByStore(calls, loads)))
}

// lawSitsOut: the server that failed is not the next to load.
func lawSitsOut(loads []Load) []violation {
	loads = guardedLoads(loads)
	if len(loads) > 1 && loads[0].Err != "" && loads[1].Worker == loads[0].Worker {
		return broken(6, "server %d failed and was the next to load again", loads[0].Worker)
	}
	return nil
}

// servedByStore returns the calls that began after a server had the value that
// another one had loaded: it was in the store by then.
func servedByStore(calls []Call, loads []Load) (later []Call) {
	loader := map[uint64]int{}
	for _, l := range loads {
		loader[l.ID] = l.Worker
	}
	shared := slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return !c.ok() || loader[c.Load] == c.Worker })
	first, ok := firstServed(shared)
	if !ok {
		return nil
	}
	for _, c := range calls {
		if c.Start > first.End {
			later = append(later, c)
		}
	}
	return later
}
