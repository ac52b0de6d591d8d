package cachefill

import (
	"math"
	"testing"
	"time"
)

// TestRefreshEarlyFollowsXFetch: the probability that a hit refreshes, with left
// to go and a load that takes took, is exp(-left / (beta × took)); and none at
// all longer than one and a half load times before the end, or in the first
// half of the time to live.
func TestRefreshEarlyFollowsXFetch(t *testing.T) {
	const n = 100_000
	for _, test := range []struct {
		early             float64
		left, took, fresh time.Duration
		never             bool
	}{
		{1, 0, time.Second, time.Hour, false},
		{1, time.Second, time.Second, time.Hour, false},
		{1, 1500 * time.Millisecond, time.Second, time.Hour, false},
		{1, 1501 * time.Millisecond, time.Second, time.Hour, true},
		{2, 3 * time.Second, time.Second, time.Hour, false},
		{0.5, time.Second, time.Second, time.Hour, true},
		{1, 500 * time.Millisecond, time.Second, time.Second, false},
		{1, 501 * time.Millisecond, time.Second, time.Second, true},
	} {
		s := settings{early: test.early}
		hits := 0
		for range n {
			if s.refreshEarly(stored{left: test.left, took: test.took, fresh: test.fresh}) {
				hits++
			}
		}
		want := math.Exp(-float64(test.left) / (test.early * float64(test.took)))
		if test.never {
			want = 0
		}
		// Six standard deviations: one run in a billion fails by chance.
		tolerance := 6*math.Sqrt(want*(1-want)/n) + 1e-9
		if got := float64(hits) / n; math.Abs(got-want) > tolerance {
			t.Errorf("%+v: refreshed with probability %v, want %v", test, got, want)
		}
	}
}

func TestRefreshEarlyNever(t *testing.T) {
	for range 1000 {
		if (&settings{}).refreshEarly(stored{took: time.Hour}) || (&settings{early: 1}).refreshEarly(stored{}) {
			t.Fatal("refreshed though it is off, or the load takes no time")
		}
	}
}

// TestJitterOnlyShortens, by every part up to its largest.
func TestJitterOnlyShortens(t *testing.T) {
	const n, ttl = 100_000, time.Hour
	for _, jitter := range []float64{0, 0.1, 0.99} {
		s := settings{jitter: jitter}
		shortest, longest, sum := ttl, time.Duration(0), 0.0
		for range n {
			d := s.shorten(ttl)
			shortest, longest, sum = min(shortest, d), max(longest, d), sum+float64(d)
		}
		least := time.Duration(float64(ttl) * (1 - jitter))
		if longest > ttl || shortest < least-time.Nanosecond {
			t.Errorf("jitter %v: from %v to %v, want from %v to %v", jitter, shortest, longest, least, ttl)
		}
		// It is spread evenly: both ends are met, and the middle is the mean.
		spread := ttl - least
		if shortest > least+spread/100 || longest < ttl-spread/100 {
			t.Errorf("jitter %v: from %v to %v, want all from %v to %v", jitter, shortest, longest, least, ttl)
		}
		if mean := time.Duration(sum / n); (mean - (ttl - spread/2)).Abs() > spread/50+1 {
			t.Errorf("jitter %v: %v on average, want %v", jitter, mean, ttl-spread/2)
		}
	}
}
