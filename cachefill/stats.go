package cachefill

import (
	"errors"
	"sync/atomic"
	"time"
)

// Stats are the counts of a cache since it was made.
type Stats struct {
	Hits     uint64 // calls answered with a fresh value
	NearHits uint64 // those of Hits that the near cache answered
	Stale    uint64 // calls answered with an older value
	Waits    uint64 // calls answered by another call's load
	Failures uint64 // calls answered with an error
	Degraded uint64 // calls answered without the store

	Loads         uint64        // loads begun
	LoadErrors    uint64        // loads that failed, panicked or timed out
	LoadTime      time.Duration // spent in loads, in sum
	Zombies       int64         // loaders past their deadline that have not returned
	Lost          uint64        // leases lost while loading
	NotStored     uint64        // values that could not be kept
	Unreadable    uint64        // stored values that could not be decoded
	StoreFailures uint64        // store calls that failed or were not answered in time
}

// counters are the counts while they change.
type counters struct {
	nearHits striped

	hits, stale, waits, failures, degraded atomic.Uint64

	loads, loadErrors, lost atomic.Uint64
	notStored, unreadable   atomic.Uint64
	storeFailures           atomic.Uint64
	loadTime                atomic.Int64
	zombies                 atomic.Int64
}

func (c *counters) stats() Stats {
	near := c.nearHits.sum()
	return Stats{
		Hits:          c.hits.Load() + near,
		NearHits:      near,
		Stale:         c.stale.Load(),
		Waits:         c.waits.Load(),
		Failures:      c.failures.Load(),
		Degraded:      c.degraded.Load(),
		Loads:         c.loads.Load(),
		LoadErrors:    c.loadErrors.Load(),
		LoadTime:      time.Duration(c.loadTime.Load()),
		Zombies:       c.zombies.Load(),
		Lost:          c.lost.Load(),
		NotStored:     c.notStored.Load(),
		Unreadable:    c.unreadable.Load(),
		StoreFailures: c.storeFailures.Load(),
	}
}

// count notes how a call ended.
func (c *counters) count(r result) {
	switch {
	case r.err != nil && !errors.Is(r.err, ErrNotFound):
		c.failures.Add(1)
	case r.outcome == Fresh:
		c.hits.Add(1)
	case r.outcome == Stale:
		c.stale.Add(1)
	case r.outcome == Waited:
		c.waits.Add(1)
	case r.outcome == Degraded:
		c.degraded.Add(1)
	}
}

// striped is a counter that many cores add to at once, spread over cache lines
// so that they wait neither for each other nor for what lies before it.
type striped struct {
	_       [64]byte
	stripes [8]struct {
		atomic.Uint64
		_ [56]byte
	}
}

// add counts one. The low bits of a clock that was just read spread the cores.
func (s *striped) add(now uint64) { s.stripes[now>>4%uint64(len(s.stripes))].Add(1) }

func (s *striped) sum() (n uint64) {
	for i := range s.stripes {
		n += s.stripes[i].Load()
	}
	return n
}
