package main

import (
	"maps"
	"slices"
	"time"
)

const (
	figKeysLoaded = "loads per key"
	figSentCall   = "commands sent per call"
)

// manyKeys: a cold fleet.
var manyKeys = scenario{
	Name:  "many-keys",
	About: "8 processes × 50 callers read 2,000 cold keys (quick: 500), each caller 100 of them (quick: 25) in an order of its own; the loader takes 20 ms",
	Run:   runManyKeys,
	Targets: []target{
		atMost(figKeysLoaded, 1, "one load per key"),
	},
}

func runManyKeys(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	counter, err := countCommands(b.ctx, f.setup.Redis)
	if err != nil {
		return nil, err
	}
	defer counter.Close()
	before, err := counter.Count(b.ctx)
	if err != nil {
		return nil, err
	}
	keys := b.keys("many", pick(b, 2000, 500))
	run, err := f.Begin(b.ctx, Job{
		Callers: callersPerServer, Keys: keys, Shuffle: true, Calls: pick(b, 100, 25),
		Bound: 3 * b.patience(), Load: LoadSpec{Takes: 20 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	calls, stuck, err := run.Wait()
	if err != nil {
		return nil, err
	}
	after, err := counter.Count(b.ctx)
	if err != nil {
		return nil, err
	}
	disturbed, err := f.Disturbed(b.ctx)
	if err != nil {
		return nil, err
	}
	r := &result{Contender: contender}
	r.checkCounts(disturbed, lawLoadedOnce(f.Loads(), keysOf(calls)))
	reportManyKeys(r, calls, f.Loads(), run.start, after.since(before))
	r.check(lawReturned(4, stuck))
	return r, nil
}

func reportManyKeys(r *result, calls []Call, loads []Load, start instant, commands tally) {
	last := start
	for _, c := range calls {
		last = max(last, c.End)
	}
	all := latenciesOf(calls, 0)
	r.Curve = all.points()
	r.outcomes(calls)
	r.add(figCalls, count, float64(len(calls)))
	r.add(figLoads, count, float64(len(loads)))
	r.add(figKeysLoaded, ratio, float64(len(loads))/float64(len(keysOf(calls))))
	r.addTime("all done after", last.sub(start))
	r.addQuantile(figP50, all, 0.5)
	r.addQuantile(figP99, all, 0.99)
	r.add(figErrors, count, float64(failures(calls)))
	r.add(figSentCall, ratio, float64(commands.sent())/float64(len(calls)))
	r.check(lawOneLoad(loads), lawServed(1, calls), lawReal(calls, loads))
}

// keysOf returns the keys that were asked for.
func keysOf(calls []Call) []string {
	asked := map[string]bool{}
	for _, c := range calls {
		asked[c.Key] = true
	}
	return slices.Collect(maps.Keys(asked))
}
