package cachefill

import (
	"math/bits"
	"sync"
	"time"
)

const (
	breakerVolume   = 5               // calls before it can open
	breakerWindow   = 16              // calls that it looks back on
	breakerFirstGap = time.Second     // until the first probe
	breakerLastGap  = 8 * time.Second // between probes, at most
)

// breaker stops asking a store that does not answer: when at least half of the
// last calls failed, only one probe at a time goes through, at growing gaps,
// until one succeeds.
type breaker struct {
	mu       sync.Mutex // protects what follows
	calls    int        // seen, up to breakerWindow
	failures uint32     // the last calls, a bit each; 1: failed
	open     bool
	probing  bool
	gap      time.Duration
	next     time.Time // the next probe
}

// allow reports whether the store may be asked, and whether a probe is due.
// Who is told so must run one and record it.
func (b *breaker) allow() (ok, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true, false
	}
	if b.probing || time.Now().Before(b.next) {
		return false, false
	}
	b.probing = true
	return false, true
}

// record notes how a call ended. It reports whether that changed the breaker.
func (b *breaker) record(failed bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		return false // a call from before it opened
	}
	b.failures = b.failures << 1 & (1<<breakerWindow - 1)
	if failed {
		b.failures |= 1
	}
	b.calls = min(b.calls+1, breakerWindow)
	if !failed || b.calls < breakerVolume || 2*bits.OnesCount32(b.failures) < b.calls {
		return false
	}
	b.open, b.gap = true, breakerFirstGap
	b.next = time.Now().Add(b.gap)
	return true
}

// probed notes how a probe ended. It reports whether that closed the breaker.
func (b *breaker) probed(failed bool) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if failed {
		b.gap = min(2*b.gap, breakerLastGap)
		b.next = time.Now().Add(b.gap)
		return false
	}
	b.open, b.calls, b.failures = false, 0, 0
	return true
}

// breakers are the breakers of a store: one per shard for reads and one for
// writes, since a server that is out of memory or read-only still reads.
type breakers struct {
	mu      sync.Mutex
	byShard map[shardOp]*breaker
}

type shardOp struct {
	shard string
	write bool
}

func (bs *breakers) of(op shardOp) *breaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.byShard[op]
	if b == nil {
		b = new(breaker)
		if bs.byShard == nil {
			bs.byShard = make(map[shardOp]*breaker)
		}
		bs.byShard[op] = b
	}
	return b
}
