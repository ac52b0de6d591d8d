package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// announcementCases are about telling every process which entries ended out of
// turn.
var announcementCases = []testCase{
	{
		name:    "AnnounceIsLive",
		promise: "announcements are live when Announce returns: an entry that another process ends after that is announced",
		needs:   announces,
		run: func(t *run) {
			c, other := t.caches()
			for range 30 {
				h := t.listen(t.ctx, other)
				h.hear(t, func() string { return t.deleted(c) })
				h.stop()
			}
		},
	},
	{
		name:    "DeleteIsAnnounced",
		promise: "a Delete is announced to every process, also to its own",
		needs:   announces,
		run: func(t *run) {
			t.announced(func(c store.Cache, key string) error { return c.Delete(t.ctx, key) })
		},
	},
	{
		name:    "DeleteAllIsAnnounced",
		promise: "each key of a DeleteAll is announced",
		needs:   announces,
		run: func(t *run) {
			t.announced(func(c store.Cache, key string) error {
				return errors.Join(store.DeleteAll(t.ctx, c, []string{t.key(), key, t.key()})...)
			})
		},
	},
	{
		name:    "PutIsAnnounced",
		promise: "a Put is announced",
		needs:   announces,
		run: func(t *run) {
			t.announced(func(c store.Cache, key string) error {
				return store.Put(t.ctx, c, key, store.NewToken(), []byte("put"), long)
			})
		},
	},
	{
		name:    "ExpireIsAnnounced",
		promise: "an Expire is announced",
		needs:   announces,
		run: func(t *run) {
			t.announced(func(c store.Cache, key string) error { return store.Expire(t.ctx, c, key) })
		},
	},
	{
		name:    "Law12AnyKeyIsAnnounced",
		promise: "an announcement names the key, which is any bytes",
		needs:   announces,
		run: func(t *run) {
			emptyKey.Lock()
			defer emptyKey.Unlock()
			c, other := t.caches()
			h := t.listen(t.ctx, other)
			for _, key := range oddKeys() {
				h.hearExactly(t, func() string { t.ok(c.Delete(t.ctx, key)); return key })
			}
		},
	},
	{
		name:    "AnnouncementsOutliveTheirContext",
		promise: "the context of Announce bounds the call: announcements go on until stop",
		needs:   announces,
		run: func(t *run) {
			c, other := t.caches()
			ctx, cancel := context.WithCancel(t.ctx)
			h := t.listen(ctx, other)
			cancel()
			time.Sleep(pause) // who watches the context has seen it
			h.hearExactly(t, func() string { return t.deleted(c) })
		},
	},
	{
		name:    "StopEndsAnnouncements",
		promise: "an entry that ends after stop is not announced, but still to others",
		needs:   announces,
		run: func(t *run) {
			c, other := t.caches()
			stopped, stays := t.listen(t.ctx, other), t.listen(t.ctx, other)
			stopped.stop()
			var keys []string
			for range 3 { // who hears the last was told the first before
				stays.hearExactly(t, func() string { keys = append(keys, t.deleted(c)); return keys[len(keys)-1] })
			}
			for _, key := range keys {
				if heard, _, _ := stopped.news(key); heard {
					t.Error("an announcement came after stop")
				}
			}
		},
	},
}

// deleted deletes a key that nobody else uses and returns it.
func (t *run) deleted(c store.Cache) string {
	t.Helper()
	key := t.key()
	t.ok(c.Delete(t.ctx, key))
	return key
}

// announced checks that what ends an entry is told to both clients with its
// key.
func (t *run) announced(end func(c store.Cache, key string) error) {
	t.Helper()
	c, other := t.caches()
	for _, h := range []*hearing{t.listen(t.ctx, c), t.listen(t.ctx, other)} {
		h.hearExactly(t, func() string {
			l := t.load(c, t.key(), "value")
			t.ok(end(other, l.Key))
			return l.Key
		})
	}
}

// hearing keeps what was announced.
type hearing struct {
	stop func()

	mu     sync.Mutex // protects what follows
	keys   map[string]bool
	doubts int
	more   chan struct{} // closed when something is announced
}

// listen has announcements told until the case ends.
func (t *run) listen(ctx context.Context, c store.Cache) *hearing {
	t.Helper()
	h := &hearing{keys: map[string]bool{}, more: make(chan struct{})}
	stop, err := as[store.Announcer](t, c).Announce(ctx, h.tell)
	t.ok(err)
	h.stop = sync.OnceFunc(stop)
	t.Cleanup(h.stop)
	return h
}

func (h *hearing) tell(c store.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.All {
		h.doubts++
	} else {
		h.keys[c.Key] = true
	}
	close(h.more)
	h.more = make(chan struct{})
}

// news reports whether key was announced and how often all was in doubt. more
// is closed when that changes.
func (h *hearing) news(key string) (exactly bool, doubts int, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[key], h.doubts, h.more
}

// hear has end end a key and waits until that is announced, which it reports,
// or all is in doubt.
func (h *hearing) hear(t *run, end func() (key string)) (exactly bool) {
	t.Helper()
	_, before, _ := h.news("")
	key := end()
	for timeout := time.After(patience); ; {
		exactly, doubts, more := h.news(key)
		if exactly || doubts > before {
			return exactly
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("waited %v in vain for an announcement of %.40q", patience, key)
		}
	}
}

// hearExactly has end end a key and waits until that is announced. A
// subscription can be lost, then all is in doubt and it is tried again.
func (h *hearing) hearExactly(t *run, end func() (key string)) {
	t.Helper()
	for range 5 {
		if h.hear(t, end) {
			return
		}
	}
	t.Fatal("no announcement named its key: each time all was in doubt")
}
