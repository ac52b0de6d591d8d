package main

import (
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var calls []Call
	for i := 100; i >= 1; i-- {
		calls = append(calls, Call{End: instant(i) * msec})
	}
	all := latenciesOf(calls, 0)
	for q, want := range map[float64]time.Duration{0.01: 1, 0.5: 50, 0.505: 51, 0.99: 99, 0.999: 100, 1: 100, 0: 1} {
		if got := all.at(q); got != want*time.Millisecond {
			t.Errorf("at %v: got %v, want %v", q, got, want*time.Millisecond)
		}
	}
	if n := all.over(90 * time.Millisecond); n != 10 {
		t.Errorf("%d calls over 90 ms, want 10", n)
	}
	if n := all.over(time.Hour); n != 0 {
		t.Errorf("%d calls over an hour, want 0", n)
	}
	beyond := latenciesOf(calls, 50*time.Millisecond)
	if beyond.at(0.5) != 0 || beyond.longest() != 50*time.Millisecond {
		t.Errorf("beyond a base of 50 ms: p50 %v, longest %v, want 0 and 50 ms", beyond.at(0.5), beyond.longest())
	}
	if none := latencies(nil); none.at(0.5) != 0 || none.points() != nil {
		t.Errorf("no calls: p50 %v, points %v", none.at(0.5), none.points())
	}
}

func TestMedian(t *testing.T) {
	if m := median([]float64{9, 1, 5}); m != 5 {
		t.Errorf("got %v, want 5", m)
	}
	if m := median(nil); m == m {
		t.Errorf("the median of nothing is %v", m)
	}
}
