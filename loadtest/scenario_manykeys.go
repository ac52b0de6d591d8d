package main

import "time"

const (
	figKeysLoaded = "loads per key"
	figSentCall   = "commands sent per call"
)

// manyKeys: a cold fleet.
var manyKeys = scenario{
	Name:  "many-keys",
	About: "8 processes × 50 callers read 2,000 cold keys, each in an order of its own, each 100 of them; the loader takes 20 ms",
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
	if err := b.warm(f); err != nil {
		return nil, err
	}
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
	r := &result{Contender: contender}
	reportManyKeys(r, calls, f.Loads(), run.start, after.since(before))
	r.check(lawReturned(4, stuck))
	return r, nil
}

func reportManyKeys(r *result, calls []Call, loads []Load, start instant, commands tally) {
	asked := map[string]bool{}
	last := start
	for _, c := range calls {
		asked[c.Key] = true
		last = max(last, c.End)
	}
	all := latenciesOf(calls, 0)
	r.Curve = all.points()
	r.outcomes(calls)
	r.add(figCalls, count, float64(len(calls)))
	r.add(figLoads, count, float64(len(loads)))
	r.add(figKeysLoaded, ratio, float64(len(loads))/float64(len(asked)))
	r.addTime("all done after", last.sub(start))
	r.addTime(figP50, all.at(0.5))
	r.addTime(figP99, all.at(0.99))
	r.add(figErrors, count, float64(failures(calls)))
	r.add(figSentCall, ratio, float64(commands.sent())/float64(len(calls)))
	keys := make([]string, 0, len(asked))
	for key := range asked {
		keys = append(keys, key)
	}
	r.check(lawLoadedOnce(loads, keys), lawServed(1, calls), lawReal(calls, loads))
}
