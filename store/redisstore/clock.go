package redisstore

import (
	"sync"
	"time"
)

// clock estimates the server's time from what it said and the monotonic clock.
type clock struct {
	mu     sync.Mutex    // protects what follows
	local  time.Time     // the middle of the sample's round trip
	server time.Time     // what the server said then
	trip   time.Duration // how long it took: the sample is wrong by half of it at most
}

// drift is by how much a sample gets worse with its age, so that a slow but new
// one replaces a quick but old one. Clocks drift less, but servers are replaced.
const drift = 1000

// observe takes a sample: the server's clock showed server between sent and
// received. The quicker sample is the better one.
func (c *clock) observe(sent, received, server time.Time) {
	trip := received.Sub(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() || trip <= c.trip+received.Sub(c.local)/drift {
		c.local, c.server, c.trip = sent.Add(trip/2), server, trip
	}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Now()
	}
	return c.server.Add(time.Since(c.local))
}
