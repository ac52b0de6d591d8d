package cachefill

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/herdgate/herdgate/store"
)

// near keeps decoded values in the process, each for a short time of its own.
// The nil near keeps nothing.
//
// A reader that an invalidation overtook must not put back the older value:
//
//  1. a look sends its Get and notes the shard's epoch
//  2. the store answers the old value
//  3. an invalidation of this process clears the near entry, deletes the
//     stored one, raises the epoch and clears again
//  4. the look returns: its epoch is over, the value is not kept
//
// TestLaw3NearRefusesOvertakenReply pins it.
type near struct {
	entries *otter.Cache[string, *nearEntry]
	ttl     time.Duration
	hits    *striped
}

type nearEntry struct {
	value   any
	stored  stored
	expires time.Duration // on the near clock
}

// processStart is the zero of the near clock: time since it is read without
// the wall clock, which halves the cost.
var processStart = time.Now()

func newNear(size int, ttl time.Duration, hits *striped) (*near, error) {
	if size == 0 {
		return nil, nil
	}
	entries, err := otter.New(&otter.Options[string, *nearEntry]{MaximumSize: size})
	if err != nil {
		return nil, err
	}
	return &near{entries: entries, ttl: ttl, hits: hits}, nil
}

// hit returns the value of key if it is there and its time is not over.
func (n *near) hit(key string) (any, bool) {
	if n == nil {
		return nil, false
	}
	entry, ok := n.entries.GetIfPresent(key)
	if !ok {
		return nil, false
	}
	now := time.Since(processStart)
	if now >= entry.expires || entry.stored.err != nil {
		return nil, false
	}
	n.hits.add(uint64(now))
	return entry.value, true
}

// held returns what is kept of key, also past its time.
func (n *near) held(key string) (v stored, current, ok bool) {
	if n == nil {
		return stored{}, false, false
	}
	entry, ok := n.entries.GetIfPresent(key)
	if !ok {
		return stored{}, false, false
	}
	return entry.stored, time.Since(processStart) < entry.expires, true
}

// put keeps a fresh value, for as long as it is fresh and at most for the near
// time to live.
func (n *near) put(key string, v stored, left time.Duration) {
	if n == nil {
		return
	}
	n.entries.Set(key, &nearEntry{value: v.value, stored: v, expires: time.Since(processStart) + min(left, n.ttl)})
}

func (n *near) remove(key string) {
	if n != nil {
		n.entries.Invalidate(key)
	}
}

func (n *near) clear() {
	if n != nil {
		n.entries.InvalidateAll()
	}
}

func (n *near) close() {
	if n != nil {
		n.entries.StopAllGoroutines()
	}
}

// followRetry is the gap between attempts to hear announcements.
const followRetry = time.Second

// follow keeps the near cache coherent with what other servers invalidate,
// set and expire, as far as the store announces it, until Close. While it does
// not, NearTTL bounds what is missed.
func (e *engine) follow(a store.Announcer) {
	for {
		stop, err := ask(background, e, e.reading(""), "", e.set.budget,
			func(stop func(), err error) {
				if err == nil {
					stop()
				}
			},
			func(ctx context.Context) (func(), error) { return a.Announce(ctx, e.changed) })
		switch {
		case err == nil:
			<-e.closing
			stop()
			return
		case errors.Is(err, errors.ErrUnsupported):
			return
		}
		select {
		case <-e.closing:
			return
		case <-time.After(followRetry):
		}
	}
}

// changed drops what the store has announced not to be current any more.
func (e *engine) changed(c store.Change) {
	if !c.All {
		if key, ours := strings.CutPrefix(c.Key, e.storeKey("")); ours {
			e.overtake([]string{key})
		}
		return
	}
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		sh.epoch++
		sh.mu.Unlock()
	}
	e.near.clear()
}
