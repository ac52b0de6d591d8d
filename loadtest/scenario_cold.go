package main

import (
	"slices"
	"time"
)

const (
	coldLoad = 200 * time.Millisecond

	figLoadsMost  = "loads, most"
	figOnce       = "repetitions loaded once"
	figBeyondP50  = "p50 beyond load"
	figBeyondP99  = "p99 beyond load"
	figBeyondMost = "longest beyond load"
	figSent       = "commands sent"
	figProcessed  = "commands processed"
)

// coldKey: many callers on many servers ask for one cold key at once.
var coldKey = scenario{
	Name:      "cold",
	About:     "8 processes × 200 callers ask for one cold key at once; the loader takes 200 ms",
	Run:       runCold,
	AlwaysAll: true,
	Targets: []target{
		atMost(figLoadsMost, 1, "1 load in every repetition"),
		{Figure: figBeyondP99, Reach: "at most process only + 2 ms", Limit: figureOf(processOnly, figBeyondP99, 2)},
		atMost(figSent, 5*8, "≤ 5 per process"),
	},
}

// countedRepetitions are those under MONITOR, which slows Redis down: their
// times do not count.
const countedRepetitions = 5

func runCold(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	r := &result{Contender: contender}
	repeat := b.repeat
	if contender != herdgate {
		repeat = max(repeat/4, 1)
	}
	sent, processed, err := countCold(b, f, r)
	if err != nil {
		return nil, err
	}
	var calls []Call
	var loads []int
	for i := range repeat {
		b.progress.step("%d of %d", i+1, repeat)
		stampede, n, err := stampede(b, f, r)
		if err != nil {
			return nil, err
		}
		calls, loads = append(calls, stampede...), append(loads, n)
	}
	r.outcomes(calls)
	beyond := latenciesOf(calls, coldLoad)
	r.Curve = latenciesOf(calls, 0).points()
	r.add("repetitions", count, float64(repeat))
	r.add(figLoadsMost, count, float64(slices.Max(loads)))
	r.add(figOnce, count, float64(len(slices.DeleteFunc(loads, func(n int) bool { return n != 1 }))))
	r.addQuantile(figBeyondP50, beyond, 0.5)
	r.addQuantile(figBeyondP99, beyond, 0.99)
	r.addQuantile(figBeyondMost, beyond, 1)
	r.add(figSent, count, median(sent))
	r.add(figProcessed, count, median(processed))
	return r, nil
}

// stampede is one repetition: its calls, and how many loads they caused.
func stampede(b *bench, f *Fleet, r *result) ([]Call, int, error) {
	key := b.key("cold")
	calls, stuck, err := f.Do(b.ctx, Job{
		Callers: b.callers, Keys: []string{key}, Calls: 1,
		Load: LoadSpec{Takes: coldLoad},
	})
	if err != nil {
		return nil, 0, err
	}
	loads := f.Loads()
	f.Forget()
	if err := f.checkLoads(b.ctx, r, 1, loads, 1); err != nil {
		return nil, 0, err
	}
	r.check(lawOneLoad(loads), lawReturned(4, stuck), lawServed(4, calls), lawReal(calls, loads))
	return calls, len(loads), nil
}

// countCold counts the commands of some stampedes.
func countCold(b *bench, f *Fleet, r *result) (sent, processed []float64, err error) {
	counter, err := countCommands(b.ctx, f.setup.Redis)
	if err != nil {
		return nil, nil, err
	}
	defer counter.Close()
	for range countedRepetitions {
		before, err := counter.Count(b.ctx)
		if err != nil {
			return nil, nil, err
		}
		if _, _, err := stampede(b, f, r); err != nil {
			return nil, nil, err
		}
		after, err := counter.Count(b.ctx)
		if err != nil {
			return nil, nil, err
		}
		d := after.since(before)
		sent, processed = append(sent, float64(d.sent())), append(processed, float64(d.processed))
		r.Notes = []string{"commands sent: " + tallied(d.byName)}
	}
	return sent, processed, nil
}
