package main

import "time"

const (
	figOthersFailed = "errors of others"
	figAfterLoad    = "others served after the load"
	figLeft         = "caller left after its cancel"
	figFirstValue   = "first value after"
)

// leaderLeaves: the caller whose loader runs is cancelled.
var leaderLeaves = scenario{
	Name:  "cancel",
	About: "the caller whose loader (600 ms) runs is cancelled while 8 processes × 50 callers wait",
	Run:   runLeaderLeaves,
	Targets: []target{
		atMost(figLoads, 1, "no extra load"),
		atMost(figOthersFailed, 0, "no errors"),
	},
}

func runLeaderLeaves(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{
		Callers: 1, Keys: []string{b.key("cancel")}, Calls: 1, Timeout: b.patience(),
		Load: LoadSpec{Takes: 600 * time.Millisecond},
	}
	leader, others, err := f.follow(b.ctx, job, job, callersPerServer, f.servers...)
	if err != nil {
		return nil, err
	}
	time.Sleep(200 * time.Millisecond) // the callers have arrived
	cancelled := now()
	if err := leader.Cancel(); err != nil {
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
	addLastServed(r, figAfterLoad, calls, loads[0].End)
	if ownStuck == 0 {
		r.addTime(figLeft, own[0].End.sub(cancelled))
	} else {
		r.addNever(figLeft, millis)
	}
	if err := f.checkLoads(b.ctx, r, 4, loads, 1); err != nil {
		return nil, err
	}
	r.check(lawOneLoad(loads), lawReturned(4, stuck+ownStuck), lawServed(4, calls), lawReal(calls, loads), lawLeft(own, loads[0]))
	return r, nil
}

// lawLeft: a cancelled caller does not wait for the load.
func lawLeft(calls []Call, l Load) (v []violation) {
	for _, c := range calls {
		if c.ok() || c.End > l.End {
			v = append(v, broken(4, "a cancelled caller stayed for the load")...)
		}
	}
	return v
}

// addLastServed adds how long after some instant the last caller was served.
func addLastServed(r *result, name string, calls []Call, since instant) {
	last := since
	for _, c := range calls {
		if c.ok() {
			last = max(last, c.End)
		}
	}
	if failures(calls) == len(calls) {
		r.addNever(name, millis)
		return
	}
	r.addTime(name, last.sub(since))
}

// impatientClients: everybody leaves after half a load, and comes back.
var impatientClients = scenario{
	Name:  "impatient",
	About: "8 processes × 10 callers give up after 100 ms and ask again; the loader takes 200 ms",
	Run:   runImpatient,
	Targets: []target{
		atMost(figLoads, 1, "filled by the first load"),
		atMost(figFirstValue, 300, "one load + one patience"),
	},
}

func runImpatient(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	run, err := f.Begin(b.ctx, Job{
		Callers: 10, Keys: []string{b.key("impatient")}, UntilOK: true,
		For: 3 * time.Second, Timeout: 100 * time.Millisecond, Pace: 10 * time.Millisecond,
		Load: LoadSpec{Takes: 200 * time.Millisecond},
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
	r.add(figLoads, count, float64(len(loads)))
	if c, ok := firstServed(calls); ok {
		r.addTime(figFirstValue, c.End.sub(run.start))
	} else {
		r.addNever(figFirstValue, millis)
	}
	r.add("calls without a value", count, float64(failures(calls)))
	r.addQuantile(figLongest, all, 1)
	if err := f.checkLoads(b.ctx, r, 4, loads, 1); err != nil {
		return nil, err
	}
	r.check(lawOneLoad(loads), lawReturned(4, stuck), lawSomeoneServed(4, calls), lawReal(calls, loads))
	return r, nil
}
