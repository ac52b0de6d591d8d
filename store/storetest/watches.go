package storetest

import (
	"bytes"
	"time"

	"github.com/herdgate/herdgate/store"
)

// cacheWatchCases are about the wake-ups of those who wait for an entry.
var cacheWatchCases = []testCase{
	{
		name:    "WatchIsLive",
		promise: "a watch is live when Watch returns: the end of a lease that a claim after it was refused for is told",
		needs:   watches,
		run: func(t *run) {
			c, other := t.caches()
			for range 30 {
				l := t.granted(c, t.key(), store.Token{})
				w := t.watch(other, l.Key)
				t.claim(other, request(l.Key, long), store.Held)
				t.ok(c.Fill(t.ctx, l, []byte("value"), long))
				w.ends(t, l)
				w.stop()
			}
		},
	},
	{
		name:    "FillTellsTheValue",
		promise: "an Event of a Fill names the grant; a value that travels along is the one that the lease was filled with",
		needs:   watches,
		run: func(t *run) {
			c, other := t.caches()
			for _, size := range []int{0, 10, 1000, 100_000} {
				value := bytes.Repeat([]byte("v"), size)
				l := t.granted(c, t.key(), store.Token{})
				w := t.waiter(other, l)
				t.ok(c.Fill(t.ctx, l, value, long))
				if e := w.ends(t, l); !e.Entry.Version.IsZero() {
					t.is(e.Entry, l.Token, string(value))
				}
				t.has(other, l.Key, l.Token, string(value))
			}
		},
	},
	{
		name:    "YieldTells",
		promise: "Yield wakes who waits; a failure that travels along is the one that the lease was yielded with",
		needs:   watches,
		run: func(t *run) {
			c, other := t.caches()
			for _, data := range []string{"", "boom"} {
				l := t.granted(c, t.key(), store.Token{})
				w := t.waiter(other, l)
				t.ok(c.Yield(t.ctx, l, store.Failure{Data: []byte(data), CoolDown: long, Memory: long}))
				e := w.ends(t, l)
				if !e.Entry.Version.IsZero() || (len(e.Failure.Data) > 0 && string(e.Failure.Data) != data) {
					t.Errorf("the yield with %q was told as %+v", data, e)
				}
			}
		},
	},
	{
		name:    "Law3DeleteTells",
		promise: "Delete wakes who waits and tells no value",
		needs:   watches,
		run: func(t *run) {
			t.tells(func(c store.Cache, key string) error { return c.Delete(t.ctx, key) })
		},
	},
	{
		name:    "DeleteAllTells",
		promise: "DeleteAll wakes who waits and tells no value",
		needs:   watches,
		run: func(t *run) {
			t.tells(func(c store.Cache, key string) error {
				return store.DeleteAll(t.ctx, c, []string{t.key(), key})[1]
			})
		},
	},
	{
		name:    "Law3PutTells",
		promise: "Put wakes who waits: the Event names the grant that ended, and does not pass off the value as that of the lease",
		needs:   watches,
		run: func(t *run) {
			t.tells(func(c store.Cache, key string) error {
				return store.Put(t.ctx, c, key, store.NewToken(), []byte("put"), long)
			})
		},
	},
	{
		name:    "ExpireTells",
		promise: "Expire wakes who waits and tells no value",
		needs:   func(b *Backend) bool { return b.Watches && b.Expires },
		run: func(t *run) {
			t.tells(func(c store.Cache, key string) error { return store.Expire(t.ctx, c, key) })
		},
	},
	{
		name:    "WatchKeepsTheNewest",
		promise: "the channel keeps only the newest event for a slow reader and is never closed",
		needs:   watches,
		run:     keepsNewest,
	},
	{
		name:    "WatchesAreIndependent",
		promise: "every watch on a key is told, and stopping one leaves the others",
		needs:   watches,
		run: func(t *run) {
			c, other := t.caches()
			l := t.granted(c, t.key(), store.Token{})
			first, second, stopped := t.waiter(other, l), t.waiter(c, l), t.watch(other, l.Key)
			stopped.stop()
			t.ok(c.Fill(t.ctx, l, []byte("value"), long))
			first.ends(t, l)
			second.ends(t, l)
		},
	},
	{
		name:    "WatchOfAnyKey",
		promise: "a watch is of any key, and of no other",
		needs:   watches,
		run:     watchAnyKey,
	},
}

// leaserWatchCases are about the wake-ups of those who wait for a lease.
var leaserWatchCases = []testCase{
	{
		name:    "ReleaseTells",
		promise: "Release wakes who waits for the lease",
		needs:   watches,
		run: func(t *run) {
			l, other := t.leasers()
			for range 30 {
				lease, err := l.Acquire(t.ctx, request(t.key(), long))
				t.ok(err)
				w := t.watch(other, lease.Key)
				_, err = other.Acquire(t.ctx, request(lease.Key, long))
				t.held(err)
				t.ok(l.Release(t.ctx, lease))
				w.ends(t, lease)
				w.stop()
			}
		},
	},
	{
		name:    "BreakTells",
		promise: "Break wakes who waits for the lease, and tells its holder",
		needs:   func(b *Backend) bool { return b.Watches && b.Breaks },
		run: func(t *run) {
			l, other := t.leasers()
			key := t.key()
			holder := t.watch(l, key)
			lease, err := l.Acquire(t.ctx, request(key, long))
			t.ok(err)
			waiter := t.watch(other, key)
			_, err = other.Acquire(t.ctx, request(key, long))
			t.held(err)
			_, err = as[store.Breaker](t, other).Break(t.ctx, key)
			t.ok(err)
			holder.ends(t, lease)
			waiter.ends(t, lease)
		},
	},
}

// watching is a watch of the case.
type watching struct {
	events <-chan store.Event
	stop   func()
}

// watch subscribes until the case ends.
func (t *run) watch(s any, key string) watching {
	t.Helper()
	events, stop, err := as[store.Watcher](t, s).Watch(t.ctx, key)
	t.ok(err)
	stopped := false
	once := func() {
		if !stopped {
			stopped = true
			stop()
		}
	}
	t.Cleanup(once)
	return watching{events: events, stop: once}
}

// waiter watches for the end of l as the contract asks: first the watch, then
// the question.
func (t *run) waiter(c store.Cache, l store.Lease) watching {
	t.Helper()
	w := t.watch(c, l.Key)
	t.claim(c, request(l.Key, long), store.Held)
	return w
}

// ends waits for the event that tells the end of l. Events that name no lease
// or another are allowed: they say "look again".
func (w watching) ends(t *run, l store.Lease) store.Event {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case e, open := <-w.events:
			if !open {
				t.Fatal("the channel of events was closed")
			}
			if e.Grant == l.Grant {
				return e
			}
		case <-timeout:
			t.Fatalf("waited %v in vain for the end of grant %d", patience, l.Grant)
		}
	}
}

// tells checks that a lease that end ends is told to a waiter and to the
// holder, and that no value is told.
func (t *run) tells(end func(c store.Cache, key string) error) {
	t.Helper()
	c, other := t.caches()
	key := t.key()
	holder := t.watch(c, key)
	l := t.granted(c, key, store.Token{})
	waiter := t.waiter(other, l)
	t.ok(end(other, key))
	for _, w := range []watching{waiter, holder} {
		if e := w.ends(t, l); !e.Entry.Version.IsZero() || len(e.Failure.Data) > 0 {
			t.Errorf("an end by another was told as %+v", e)
		}
	}
}

func keepsNewest(t *run) {
	c, other := t.caches()
	key := t.key()
	w := t.watch(other, key)
	var last store.Lease
	for range 20 {
		last = t.granted(c, key, store.Token{})
		t.claim(other, request(key, long), store.Held)
		t.ok(c.Yield(t.ctx, last, store.Failure{}))
	}
	w.ends(t, last)
	w.stop()
	if n := cap(w.events); n > 1 {
		t.Errorf("the channel keeps %d events", n)
	}
	select {
	case _, open := <-w.events:
		if !open {
			t.Error("stop closed the channel")
		}
	default:
	}
}

func watchAnyKey(t *run) {
	c, other := t.caches()
	type pair struct {
		lease store.Lease
		w     watching
	}
	var pairs []pair
	for _, key := range oddKeys()[1:] {
		l := t.granted(c, key, store.Token{})
		pairs = append(pairs, pair{l, t.waiter(other, l)})
	}
	for _, p := range pairs {
		t.ok(c.Yield(t.ctx, p.lease, store.Failure{}))
		p.w.ends(t, p.lease)
	}
}
