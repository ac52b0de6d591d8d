package memcachestore

import (
	"fmt"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	// minSeconds is the shortest time to live that is safe: memcached counts
	// with a clock that ticks once a second, so that 1 can mean 60 ms.
	minSeconds = 2

	// maxSeconds is thirty days. memcached takes more for a date, and a date
	// would be one of the client's clock.
	maxSeconds = 30 * 24 * 60 * 60

	// early is by how much an item can end before its time to live is over.
	early = time.Second
)

// seconds rounds ttl up to what memcached counts. The result is never zero,
// which would mean for ever.
func seconds(ttl time.Duration) int32 {
	if ttl >= maxSeconds*time.Second {
		return maxSeconds
	}
	n := int32((ttl + time.Second - 1) / time.Second)
	return max(n, minSeconds)
}

// expires is when the holder of a lease for n seconds must have stopped.
func expires(sent time.Time, n int32) time.Time {
	return sent.Add(time.Duration(n)*time.Second - early)
}

// positive returns an error that names a time to live which is not positive.
func positive(ttl time.Duration) error {
	if ttl > 0 {
		return nil
	}
	return fmt.Errorf("memcachestore: a time to live of %v: it must be positive", ttl)
}

// span shortens d to what a record can hold.
func span(d time.Duration) time.Duration {
	return min(max(d, 0), maxSeconds*time.Second)
}

// remaining is the rest of an entry's time to live. memcached does not tell
// it, so that a wall clock has to: one that is wrong makes the entry end
// earlier, or at most one time to live from now.
func (r record) remaining(now time.Time) time.Duration {
	return min(max(r.span-now.Sub(time.UnixMilli(r.stamp)), 0), r.span)
}

// failed is the answer of a failure, with how long it still cools down.
func (s *Store) failed(at slot) store.Answer {
	return store.Answer{State: store.Failed, Failure: store.Failure{
		Data:     at.body,
		CoolDown: s.strange.coolDown(at.name, at.record, time.Now()),
	}}
}

// strangeClocks measures cool-downs. memcached tells neither its time nor how
// long an item has still to live, and whole seconds would be too coarse for a
// cool-down of one, so that a failure carries the wall clock of its writer.
//
// A reader whose clock is ahead of the writer's ends the cool-down early. That
// costs it one load, under the lease. A reader whose clock is behind would wait
// longer, by as much as the clocks differ. It notices that the failure comes
// from the future, remembers when it first saw it, and waits one cool-down
// from then by its monotonic clock. In any case the failure ends with its
// Memory, by memcached's clock.
type strangeClocks struct {
	mu   sync.Mutex
	seen map[sight]time.Time // when a failure from the future was first seen
}

// sight is one failure.
type sight struct {
	name  string
	stamp int64
}

// maxSights bounds the memory. Beyond it all is forgotten, and a failure from
// the future cools down once more.
const maxSights = 1000

func (c *strangeClocks) coolDown(name string, failure record, now time.Time) time.Duration {
	left := failure.span - now.Sub(time.UnixMilli(failure.stamp))
	if first, ok := c.firstSeen(name, failure.stamp, now); ok {
		left = min(left, failure.span-now.Sub(first))
	}
	return max(left, 0)
}

// firstSeen reports when a failure was first seen, if its stamp was in the
// future then.
func (c *strangeClocks) firstSeen(name string, stamp int64, now time.Time) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := sight{name, stamp}
	first, ok := c.seen[id]
	if ok || !time.UnixMilli(stamp).After(now) {
		return first, ok
	}
	if c.seen == nil || len(c.seen) >= maxSights {
		c.seen = make(map[sight]time.Time)
	}
	c.seen[id] = now
	return now, true
}
