package main

import (
	"slices"
	"time"
)

const (
	figStaleEntries = "rounds with a stale entry"
	figLoadsRound   = "loads per round"
)

// invalidateDuringLoad: a key is invalidated while it is being loaded.
var invalidateDuringLoad = scenario{
	Name:  "invalidate",
	About: "the value changes and is invalidated while it is being loaded (200 ms); 8 processes × 10 callers read during the load, after the invalidation, and once more",
	Run:   runInvalidate,
	Targets: []target{
		atMost(figStaleReaders, 0, "no stale answer after Invalidate returned"),
		atMost(figStaleEntries, 0, "0 stale entries"),
	},
}

func runInvalidate(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	rounds := pick(b, 20, 5)
	var stale, entries, loads int
	var all []Call
	r := &result{Contender: contender}
	for i := range rounds {
		b.progress.step("%d of %d", i+1, rounds)
		soon, late, err := b.invalidateOnce(f, r, int64(2*i))
		if err != nil {
			return nil, err
		}
		stale += countOlder(soon, 0, int64(2*i+1))
		if countOlder(late, 0, int64(2*i+1)) > 0 {
			entries++
		}
		loads += len(f.Loads())
		all = append(all, soon...)
		f.Forget()
	}
	r.Curve = latenciesOf(all, 0).points()
	r.outcomes(all)
	r.add("rounds", count, float64(rounds))
	r.add(figStaleReaders, count, float64(stale))
	r.add(figStaleEntries, count, float64(entries))
	r.add(figLoadsRound, ratio, float64(loads)/float64(rounds))
	r.addQuantile(figLongest, latenciesOf(all, 0), 1)
	return r, nil
}

// invalidateOnce loads a version, makes the next one in the middle of it and
// invalidates the key. It returns the calls of readers that began then, and of
// readers that began when all others were done.
func (b *bench) invalidateOnce(f *Fleet, r *result, version int64) (soon, late []Call, err error) {
	if err := f.SetSource(b.ctx, version); err != nil {
		return nil, nil, err
	}
	job := Job{
		Callers: 1, Keys: []string{b.key("invalidate")}, Calls: 1,
		Timeout: b.patience(), Load: LoadSpec{Takes: 200 * time.Millisecond},
	}
	leader, others, err := f.follow(b.ctx, job, job, 10, f.servers...)
	if err != nil {
		return nil, nil, err
	}
	time.Sleep(50 * time.Millisecond) // the callers have arrived
	if err := f.SetSource(b.ctx, version+1); err != nil {
		return nil, nil, err
	}
	if err := f.servers[1].do(b.ctx, "Invalidate", job.Keys[0]); err != nil {
		return nil, nil, err
	}
	invalidated := now()
	job.Callers = 10
	soon, stuck, err := f.Do(b.ctx, job)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range []*Run{leader, others} {
		calls, n, err := run.Wait()
		if err != nil {
			return nil, nil, err
		}
		stuck += n
		r.check(lawServed(4, calls))
	}
	late, n, err := f.Do(b.ctx, job)
	if err != nil {
		return nil, nil, err
	}
	r.check(lawNotOlder(3, soon, 0, version+1), lawNotOlder(3, late, 0, version+1),
		lawServed(3, soon), lawServed(3, late), lawReturned(4, stuck+n), lawOneLoad(loadsAfter(f.Loads(), invalidated)), lawReal(append(soon, late...), f.Loads()))
	return soon, late, nil
}

// loadsAfter returns the loads that began after the instant: an invalidation
// ends the right to load of those before.
func loadsAfter(loads []Load, after instant) []Load {
	return slices.DeleteFunc(slices.Clone(loads), func(l Load) bool { return l.Start < after })
}
