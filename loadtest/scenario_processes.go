package main

import "time"

const (
	figAfterKill    = "others served after the kill"
	figAfterPause   = "others served after the pause"
	figStaleReaders = "stale answers"
	leaseLoad       = 200 * time.Millisecond
)

// leaderKilled: the process that loads dies.
var leaderKilled = scenario{
	Name:  "killed",
	About: "the process that loads (200 ms) is killed by SIGKILL while 7 processes × 50 callers wait",
	Run:   runKilled,
	Targets: []target{
		atMost(figAfterKill, 2210, "lease of 2 s + one load + 10 ms"),
	},
}

func runKilled(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{
		Callers: 1, Keys: []string{b.key("killed")}, Calls: 1,
		Timeout: 2 * b.patience(), Load: LoadSpec{Takes: leaseLoad},
	}
	leader, others, err := f.follow(b.ctx, job, job, callersPerServer, f.servers[1:]...)
	if err != nil {
		return nil, err
	}
	time.Sleep(leaseLoad / 4) // the callers have arrived
	killed := now()
	f.servers[0].Crash()
	calls, stuck, err := others.Wait()
	if err != nil {
		return nil, err
	}
	if _, _, err := leader.Wait(); err != nil {
		return nil, err
	}
	loads := f.Loads()
	r := &result{Contender: contender, Curve: latenciesOf(calls, 0).points()}
	r.outcomes(calls)
	addLastServed(r, figAfterKill, calls, killed)
	r.add("loads of others", count, float64(len(loads)-1))
	r.add(figErrors, count, float64(failures(calls)))
	if err := f.checkLoads(b.ctx, r, 1, loads, 2); err != nil {
		return nil, err
	}
	r.check(lawOneLoad(loads[1:]), lawReturned(5, stuck), lawServed(5, calls))
	return r, nil
}

// leaderPaused: the process that loads is stopped for longer than its lease,
// and goes on when the world has changed.
var leaderPaused = scenario{
	Name: "paused",
	About: "the process that loads (200 ms) is stopped past its lease; others take over, the value changes and is invalidated; " +
		"then the process continues",
	Run: runPaused,
	Targets: []target{
		atMost(figAfterPause, 2210, "lease of 2 s + one load + 10 ms"),
		atMost(figStaleReaders, 0, "no stale entry"),
	},
}

func runPaused(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{
		Callers: 1, Keys: []string{b.key("paused")}, Calls: 1,
		Timeout: 2 * b.patience(), Load: LoadSpec{Takes: leaseLoad},
	}
	paused, rest := f.servers[0], f.servers[1:]
	leader, others, err := f.follow(b.ctx, job, job, callersPerServer, rest...)
	if err != nil {
		return nil, err
	}
	time.Sleep(leaseLoad / 4) // the callers have arrived
	stopped := now()
	if err := paused.Pause(); err != nil {
		return nil, err
	}
	defer func() { _ = paused.Continue() }()
	calls, stuck, err := others.Wait()
	if err != nil {
		return nil, err
	}
	r := &result{Contender: contender, Curve: latenciesOf(calls, 0).points()}
	r.outcomes(calls)
	addLastServed(r, figAfterPause, calls, stopped)
	r.add(figErrors, count, float64(failures(calls)))
	r.check(lawReturned(5, stuck), lawServed(5, calls), lawOneLoad(f.Loads()[1:]))
	return r, b.changeAndContinue(f, r, job, leader)
}

// changeAndContinue changes the value behind the back of the paused leader,
// has it seen, and lets the leader end its load.
func (b *bench) changeAndContinue(f *Fleet, r *result, job Job, leader *Run) error {
	paused, rest := f.servers[0], f.servers[1:]
	if err := f.SetSource(b.ctx, 1, rest...); err != nil {
		return err
	}
	if err := rest[0].do(b.ctx, "Invalidate", job.Keys[0]); err != nil {
		return err
	}
	before, stuck, err := f.Do(b.ctx, job, rest...)
	if err != nil {
		return err
	}
	if err := paused.Continue(); err != nil {
		return err
	}
	own, ownStuck, err := leader.Wait()
	if err != nil {
		return err
	}
	if err := f.SetSource(b.ctx, 1, paused); err != nil {
		return err
	}
	job.Callers = 10
	after, afterStuck, err := f.Do(b.ctx, job)
	if err != nil {
		return err
	}
	r.add(figStaleReaders, count, float64(countOlder(append(before, after...), 0, 1)))
	r.check(lawNotOlder(3, before, 0, 1), lawNotOlder(2, after, 0, 1),
		lawReturned(5, stuck+ownStuck+afterStuck), lawServed(5, before), lawServed(5, after), lawServed(2, own))
	return nil
}
