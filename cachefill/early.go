package cachefill

import (
	"math"
	"math/rand/v2"
	"time"
)

// refreshEarly decides whether a hit on a fresh value starts its refresh: the
// closer to its end and the longer it takes to load, the likelier. It is
// XFetch, with the load time that was measured when the value was made.
func (s *settings) refreshEarly(left, took time.Duration) bool {
	if s.early == 0 || took <= 0 {
		return false
	}
	gap := float64(took) * s.early * -math.Log(1-rand.Float64())
	return gap >= float64(left)
}

// shorten takes up to the jitter's part off a time to live.
func (s *settings) shorten(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*s.jitter*rand.Float64())
}
