package main

import (
	"math"
	"slices"
	"time"
)

// latencies are the times of some calls, ascending.
type latencies []time.Duration

// latenciesOf returns the times that the calls took, less a base that they
// could not be without, and not below zero.
func latenciesOf(calls []Call, base time.Duration) latencies {
	l := make(latencies, len(calls))
	for i := range calls {
		l[i] = max(calls[i].took()-base, 0)
	}
	slices.Sort(l)
	return l
}

// at returns the smallest time that a part q of all calls did not exceed
// (nearest rank), zero if there are none.
func (l latencies) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(l))))
	return l[min(max(rank, 1), len(l))-1]
}

func (l latencies) longest() time.Duration { return l.at(1) }

// over counts the calls that took longer than d.
func (l latencies) over(d time.Duration) int {
	n, _ := slices.BinarySearch(l, d+1)
	return len(l) - n
}

// curve are the quantiles that charts show.
var curve = []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// points returns the times at the quantiles of curve, in milliseconds.
func (l latencies) points() []float64 {
	if len(l) == 0 {
		return nil
	}
	points := make([]float64, len(curve))
	for i, q := range curve {
		points[i] = ms(l.at(q))
	}
	return points
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
