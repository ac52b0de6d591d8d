package main

import (
	"context"
	"slices"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
)

const (
	figDeadBeyond = "longest beyond load, at first"
	figDeadP50    = "p50, at first"
	figOpenBeyond = "p99 beyond load, breaker open"
	figAgain      = "one load again after"

	deadServers = 4 // with 25 callers each
	deadCallers = 25
	deadLoad    = 200 * time.Millisecond
)

var deadTargets = []target{
	atMost(figDeadBeyond, 110, "store budget + one load + 10 ms"),
	atMost(figOpenBeyond, 1, "once the breaker is open, + 1 ms"),
	atMost(figErrors, 0, "no errors"),
}

// redisKilled: the store dies and comes back.
var redisKilled = scenario{
	Name:  "redis-killed",
	About: "Redis is killed; 4 processes × 25 callers ask for one cold key (200 ms), for many during 2 s, for one again; then Redis is back",
	Run: func(b *bench, contender string) (*result, error) {
		return runRedisDown(b, contender, (*servertest.Process).Kill, (*servertest.Process).Restart)
	},
	Targets: deadTargets,
}

// redisPaused: the store stops to answer and keeps its connections open.
var redisPaused = scenario{
	Name:  "redis-paused",
	About: "Redis is stopped by SIGSTOP, its connections stay open; 4 processes × 25 callers ask for one cold key (200 ms), for many during 2 s, for one again; then Redis goes on",
	Run: func(b *bench, contender string) (*result, error) {
		mend := func(p *servertest.Process, _ context.Context) error {
			p.Continue()
			return nil
		}
		return runRedisDown(b, contender, (*servertest.Process).Pause, mend)
	},
	Targets: deadTargets,
}

func runRedisDown(b *bench, contender string, harm func(*servertest.Process), mend func(*servertest.Process, context.Context) error) (*result, error) {
	server, f, err := b.fragile(contender)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	defer f.Stop()
	harm(server)
	r := &result{Contender: contender}
	first, last, err := deadStampedes(b, f, r)
	if err != nil {
		return nil, err
	}
	atFirst := latenciesOf(first, deadLoad)
	r.Curve = latenciesOf(first, 0).points()
	r.outcomes(first)
	r.addQuantile(figDeadP50, latenciesOf(first, 0), 0.5)
	r.addQuantile(figDeadBeyond, atFirst, 1)
	r.addQuantile(figOpenBeyond, latenciesOf(last, deadLoad), 0.99)
	if err := mend(server, b.ctx); err != nil {
		return nil, err
	}
	return r, b.awaitOneLoad(f, r)
}

// fragile starts a Redis to be harmed, and a fleet on it.
func (b *bench) fragile(contender string) (*servertest.Process, *Fleet, error) {
	server, err := b.startRedis()
	if err != nil {
		return nil, nil, err
	}
	f, err := startFleet(b.ctx, deadServers, Setup{Contender: contender, Redis: server.Addr})
	if err != nil {
		server.Kill()
		return nil, nil, err
	}
	if err := b.warm(f); err != nil {
		f.Stop()
		server.Kill()
		return nil, nil, err
	}
	return server, f, nil
}

// deadStampedes lets the fleet ask for cold keys without a store: for one, then
// for many, so that everybody can notice that there is none, then for one
// again. It returns the calls of the first and of the last time.
func deadStampedes(b *bench, f *Fleet, r *result) (first, last []Call, err error) {
	wave := Job{
		Callers: deadCallers, Keys: []string{b.key("dead")}, Calls: 1,
		Timeout: b.patience(), Bound: b.patience(), Load: LoadSpec{Takes: deadLoad},
	}
	first, err = deadStampede(b, f, r, wave)
	if err != nil || failures(first) == len(first) {
		return first, nil, err // it gets no better, and each time takes long
	}
	notice := wave
	notice.Keys, notice.Shuffle = b.keys("dead", 50), true
	notice.Calls, notice.For = 0, min(2*time.Second, b.patience())
	notice.Load.Takes = 10 * time.Millisecond
	if _, err = deadStampede(b, f, r, notice); err != nil {
		return nil, nil, err
	}
	wave.Keys = []string{b.key("dead")}
	last, err = deadStampede(b, f, r, wave)
	return first, last, err
}

func deadStampede(b *bench, f *Fleet, r *result, job Job) ([]Call, error) {
	calls, stuck, err := f.Do(b.ctx, job)
	if err != nil {
		return nil, err
	}
	loads := f.Loads()
	f.Forget()
	r.check(lawReturned(9, stuck), lawServed(9, calls), lawReal(calls, loads), lawCoalesced(loads))
	r.count(figErrors, failures(calls)+stuck)
	return calls, nil
}

// lawCoalesced: each server loads a key once at a time at most, store or no
// store.
func lawCoalesced(loads []Load) (v []violation) {
	for _, own := range loadsByWorker(loads) {
		v = append(v, lawApart(9, own)...)
	}
	return firstFew(v)
}

// againBound is how long a fleet may take to notice that the store is back.
const againBound = 15 * time.Second

// awaitOneLoad asks for cold keys until the fleet coalesces again.
func (b *bench) awaitOneLoad(f *Fleet, r *result) error {
	if !coalesces(r.Contender) {
		return nil
	}
	mended := now()
	for now().sub(mended) < againBound {
		calls, stuck, err := f.Do(b.ctx, Job{
			Callers: 5, Keys: []string{b.key("again")}, Calls: 1,
			Timeout: b.patience(), Bound: b.patience(), Load: LoadSpec{Takes: 100 * time.Millisecond},
		})
		if err != nil {
			return err
		}
		loads := f.Loads()
		f.Forget()
		r.check(lawReturned(9, stuck), lawServed(9, calls))
		if len(loads) == 1 && failures(calls) == 0 {
			r.addTime(figAgain, loads[0].Start.sub(mended))
			return nil
		}
	}
	r.addNever(figAgain, millis)
	r.check(broken(9, "the fleet does not coalesce again %v after the store is back", againBound))
	return nil
}

// coalesces reports whether a contender coalesces the loads of a fleet at all.
func coalesces(contender string) bool {
	return !slices.Contains([]string{noGuard, processOnly, goRedisCache}, contender)
}

// redisRestarted: the store forgets everything.
var redisRestarted = scenario{
	Name:  "redis-restarted",
	About: "Redis is killed and started again, empty, while 4 processes × 25 callers read 10 keys about 20 ms apart; the loader takes 200 ms",
	Run:   runRedisRestarted,
	Targets: []target{
		atMost(figErrors, 0, "no errors"),
		atMost(figLongest, 310, "store budget + one load + 10 ms"),
	},
}

func runRedisRestarted(b *bench, contender string) (*result, error) {
	server, f, err := b.fragile(contender)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	defer f.Stop()
	run, err := f.Begin(b.ctx, Job{
		Callers: deadCallers, Keys: b.keys("restarted", 10), Shuffle: true,
		For: pick(b, 6*time.Second, 4*time.Second), Pace: 20 * time.Millisecond,
		Timeout: b.patience(), Load: LoadSpec{Takes: deadLoad},
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second) // all keys are filled
	killed := now()
	server.Kill()
	if err := server.Restart(b.ctx); err != nil {
		return nil, err
	}
	back := now()
	calls, stuck, err := run.Wait()
	if err != nil {
		return nil, err
	}
	loads := f.Loads()
	later := slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.End < killed })
	all := latenciesOf(later, 0)
	r := &result{Contender: contender, Curve: all.points()}
	r.outcomes(calls)
	r.addTime("Redis was away for", back.sub(killed))
	r.add(figErrors, count, float64(failures(calls)+stuck))
	r.addQuantile(figLongest, all, 1)
	r.addQuantile(figP99, all, 0.99)
	r.add("loads since", count, float64(len(slices.DeleteFunc(slices.Clone(loads), func(l Load) bool { return l.Start < killed }))))
	r.check(lawReturned(9, stuck), lawServed(9, calls), lawReal(calls, loads), lawCoalesced(loads))
	f.Forget()
	return r, b.awaitOneLoad(f, r)
}
