package cachefill

import (
	"math"
	"math/rand/v2"
	"time"
)

// earliest is how many load times before its end a value is refreshed at the
// earliest. XFetch alone begins the earlier the more hits there are, by the
// logarithm of their rate, since it counts on everybody rolling dice for
// themselves; here a lease lets one refresh at a time, and a hot key with a
// short time to live would be loaded all the time.
const earliest = 1.5

// refreshEarly decides whether a hit on v starts its refresh: the closer to
// its end and the longer it takes to load, the likelier. It is XFetch, with the
// load time that was measured when the value was made.
func (s *settings) refreshEarly(v stored) bool {
	took := float64(v.took) * s.early
	if took <= 0 || float64(v.left) > min(earliest*took, float64(v.fresh)/2) {
		return false
	}
	return took*-math.Log(1-rand.Float64()) >= float64(v.left)
}

// shorten takes up to the jitter's part off a time to live.
func (s *settings) shorten(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*s.jitter*rand.Float64())
}
