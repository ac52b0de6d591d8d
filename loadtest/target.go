package main

import "fmt"

// target is a figure of herdgate to reach. It is no law: a slow machine may
// miss it.
type target struct {
	Figure string
	Reach  string
	Limit  func(others map[string]*result) (limit float64, known bool)
	Least  bool // the limit is a lower one
}

// atMost is the target of a figure that must not exceed limit.
func atMost(name string, limit float64, reach string) target {
	return target{Figure: name, Reach: reach, Limit: func(map[string]*result) (float64, bool) {
		return limit, true
	}}
}

// figureOf is the limit that another contender's figure sets, plus some more.
func figureOf(contender, name string, plus float64) func(map[string]*result) (float64, bool) {
	return func(others map[string]*result) (float64, bool) {
		f, ok := others[contender].figure(name)
		return f.Value + plus, ok && !f.Never
	}
}

// verdict is how herdgate did by a target.
type verdict struct {
	Figure string `json:"figure"`
	Reach  string `json:"reach"`
	Got    string `json:"got"`
	Met    bool   `json:"met"`
}

// judge returns the verdicts on herdgate's result. Targets whose figures were
// not measured, here or by the contender they refer to, are left out.
func judge(targets []target, results []*result) (verdicts []verdict) {
	by := map[string]*result{}
	for _, r := range results {
		by[r.Contender] = r
	}
	for _, t := range targets {
		got, ok := by[herdgate].figure(t.Figure)
		limit, known := t.Limit(by)
		if !ok || !known {
			continue
		}
		met := got.Value <= limit
		if t.Least {
			met = got.Value >= limit
		}
		met = met && !got.Never
		reach := fmt.Sprintf("%s (%s)", t.Reach, figure{Unit: got.Unit, Value: limit})
		verdicts = append(verdicts, verdict{t.Figure, reach, got.String(), met})
	}
	return verdicts
}
