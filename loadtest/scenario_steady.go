package main

import "time"

const (
	figCalls         = "calls"
	figSlow          = "calls over 50 ms"
	figP50           = "p50"
	figP99           = "p99"
	figLongest       = "longest call"
	figLoads         = "loads"
	figExpiries      = "expiries"
	figLoadsEach     = "loads per expiry"
	figLoadsTTL      = "loads per time to live"
	figErrors        = "errors"
	steadyLoad       = 200 * time.Millisecond
	steadyTTL        = time.Second
	slowCall         = 50 * time.Millisecond
	callersPerServer = 50
)

// steadyKey: a key expires again and again under constant load.
var steadyKey = scenario{
	Name:  "steady",
	About: "8 processes × 50 callers read one key with 1 s to live, about 20 ms apart; the loader takes 200 ms",
	Run:   runSteady,
	Targets: []target{
		atMost(figSlow, 0, "none after the first fill"),
		atMost(figLoadsEach, 1, "no two loads for one expiry"),
		atMost(figLoadsTTL, 1.2, "one load per expiry in the fleet, 10 % jitter included"),
	},
}

func runSteady(b *bench, contender string) (*result, error) {
	f, err := b.fleet(contender, Tuning{TTL: steadyTTL, Stale: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	job := Job{Callers: 1, Keys: []string{b.key("steady")}, Calls: 1, Load: LoadSpec{Takes: steadyLoad}}
	first, _, err := f.Do(b.ctx, job, f.servers[0])
	if err != nil {
		return nil, err
	}
	job.Callers, job.Calls = callersPerServer, 0
	job.For, job.Pace = pick(b, 12*time.Second, 3*time.Second), 20*time.Millisecond
	calls, stuck, err := f.Do(b.ctx, job)
	if err != nil {
		return nil, err
	}
	loads, all := f.Loads(), latenciesOf(calls, 0)
	r := &result{Contender: contender, Curve: all.points()}
	r.outcomes(calls)
	r.add(figCalls, count, float64(len(calls)))
	r.add(figSlow, count, float64(all.over(slowCall)))
	r.addQuantile(figP50, all, 0.5)
	r.addQuantile(figP99, all, 0.99)
	r.addQuantile(figLongest, all, 1)
	r.add(figLoads, count, float64(len(loads)))
	r.add(figExpiries, count, float64(bursts(loads)))
	r.add(figLoadsEach, ratio, float64(len(loads))/float64(bursts(loads)))
	afterFirst := float64(len(loads) - 1)
	r.add(figLoadsTTL, ratio, afterFirst*float64(steadyTTL)/float64(job.For))
	r.add(figErrors, count, float64(failures(calls)))
	calls = append(calls, first...)
	r.check(lawOneLoad(loads), lawReturned(4, stuck), lawServed(1, calls), lawReal(calls, loads))
	return r, nil
}

// failures counts the calls without a value.
func failures(calls []Call) (n int) {
	for _, c := range calls {
		if !c.ok() {
			n++
		}
	}
	return n
}
