package cachefill_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/storetest"
)

// situation is how an event comes about, and what it tells.
type situation struct {
	kind    cachefill.EventKind
	n       int
	err     error
	provoke func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults)
}

var errDown = errors.New("down")

var situations = map[string]situation{
	"value": {cachefill.LoadEnded, 1, nil, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		_, _ = c.Get(t.Context(), "key", value(1))
	}},
	"failure": {cachefill.LoadEnded, 1, errDown, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		_, _ = c.Get(t.Context(), "key", fails(errDown))
	}},
	"deadline": {cachefill.LoadEnded, 1, cachefill.ErrLoadTimeout, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		_, _ = c.Get(t.Context(), "key", hang)
	}},
	"panic": {cachefill.LoadPanicked, 1, cachefill.ErrPanicked, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		_ = panics(func() { _, _ = c.Get(t.Context(), "key", boom(0)) })
	}},
	"the end of a panic": {cachefill.LoadEnded, 1, cachefill.ErrPanicked, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		_ = panics(func() { _, _ = c.Get(t.Context(), "key", boom(0)) })
	}},
	"lease ended by an invalidation elsewhere": {cachefill.LeaseLost, 1, store.ErrLost, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		_, _ = c.Get(t.Context(), "key", func(context.Context) (int, error) { return 1, s.Delete(t.Context(), "fill:key") })
	}},
	"store fails": {cachefill.StoreFailed, 1, storetest.ErrFault, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		f.next(dead, "Get")
		_, _ = c.Get(t.Context(), "key", value(1))
	}},
	"store out and back": {cachefill.StoreBreaker, 2, cachefill.ErrUnavailable, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		f.set(dead, "Get")
		for range 5 {
			_, _ = c.Peek(t.Context(), "key")
		}
		f.clear()
		time.Sleep(2 * time.Second)
		_, _ = c.Peek(t.Context(), "key") // is due to probe
		time.Sleep(time.Second)
	}},
	"value not kept": {cachefill.NotStored, 1, store.ErrTooLarge, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		f.set(storetest.Fault{Err: store.ErrTooLarge}, "Fill")
		_, _ = c.Get(t.Context(), "key", value(1))
	}},
	"bytes that nobody can read": {cachefill.Unreadable, 1, nil, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		plant(t, s, "key", "foreign")
		_, _ = c.Peek(t.Context(), "key")
	}},
	"invalidation retried": {cachefill.InvalidateRetried, 2, cachefill.ErrUnavailable, func(t *testing.T, c *cachefill.Cache[int], s store.Cache, f *faults) {
		f.set(dead, "Delete", "DeleteAll")
		_ = c.Invalidate(t.Context(), "key")
		time.Sleep(60 * time.Millisecond)
		f.clear()
		time.Sleep(time.Second)
	}},
}

// TestEventsTellWhatHappened: each kind in its situation, and no other but the
// end of loads.
func TestEventsTellWhatHappened(t *testing.T) {
	for name, test := range situations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log eventLog
				s, f := newFaulty()
				c := newCache(t, s, &cachefill.Options[int]{OnEvent: log.add, LoadTimeout: time.Second})
				test.provoke(t, c, s, f)
				synctest.Wait()
				events := log.of(test.kind)
				if len(events) != test.n {
					t.Fatalf("%d events %v, want %d; all: %v", len(events), test.kind, test.n, log.events)
				}
				if e := events[0]; e.Key != "key" || test.err != nil && !errors.Is(e.Err, test.err) {
					t.Errorf("event %+v, want the error %v", e, test.err)
				}
				if last := events[len(events)-1]; test.n > 1 && last.Err != nil {
					t.Errorf("the last event is %+v, want that it is well again", last)
				}
			})
		})
	}
}

// fails is a loader that returns err.
func fails(err error) cachefill.Loader[int] {
	return func(context.Context) (int, error) { return 0, err }
}

func TestEventsHaveDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log eventLog
		c := newCache(t, newStore(), &cachefill.Options[int]{OnEvent: log.add})
		var loads counter
		_, _ = c.Get(t.Context(), "slow", loads.after(3*time.Second, nil))
		if e := log.of(cachefill.LoadEnded); len(e) != 1 || e[0].Took != 3*time.Second || e[0].Err != nil {
			t.Errorf("events %+v, want one that took 3s", e)
		}
		_ = panics(func() { _, _ = c.Get(t.Context(), "bad", boom(0)) })
		if e := log.of(cachefill.LoadPanicked); len(e) != 1 || !strings.Contains(e[0].Err.Error(), "boom") || !strings.Contains(e[0].Err.Error(), "endings_test.go") {
			t.Errorf("events %+v, want the value and the stack", e)
		}
	})
}

// TestHookMayCallTheCache: no lock is held while it runs.
func TestHookMayCallTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var c *cachefill.Cache[int]
		var calls sync.WaitGroup
		c = newCache(t, s, &cachefill.Options[int]{OnEvent: func(e cachefill.Event) {
			calls.Add(1)
			defer calls.Done()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = c.Expire(ctx, e.Key)
			_, _ = c.Peek(ctx, e.Key)
		}})
		_, _ = c.Get(t.Context(), "key", func(context.Context) (int, error) { return 1, s.Delete(t.Context(), "fill:key") })
		synctest.Wait()
		calls.Wait()
	})
}

func TestKindsAndOutcomesHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for o := cachefill.Outcome(0); o <= cachefill.Degraded; o++ {
		seen[o.String()] = true
	}
	for k := cachefill.EventKind(0); k <= cachefill.LoadPanicked; k++ {
		seen[k.String()] = true
	}
	if len(seen) != 15 || !seen["none"] || seen[""] { // "none" is in both
		t.Errorf("names %v", seen)
	}
	if got := cachefill.Outcome(99).String() + cachefill.EventKind(99).String(); got != "outcome(99)event(99)" {
		t.Errorf("unknown ones are %q", got)
	}
}

// TestStatsCountHowCallsEnd, each call once.
func TestStatsCountHowCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFaulty()
		c := newCache(t, s, steady(cachefill.Options[int]{
			TTL: time.Minute, Stale: time.Minute, Near: 10, NearTTL: time.Second, LoadTimeout: 5 * time.Second}))
		want := cachefill.Stats{}
		check := func(what string, calls int, fields ...*uint64) {
			t.Helper()
			synctest.Wait()
			for _, field := range fields {
				*field += uint64(calls)
			}
			got := c.Stats()
			want.LoadTime = got.LoadTime
			if got != want {
				t.Errorf("after %s:\n got %+v\nwant %+v", what, got, want)
				want = got
			}
		}
		var loads counter
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = c.Get(t.Context(), "key", loads.after(2*time.Second, nil)) })
		}
		wg.Wait()
		want.Loads = 1
		check("a load and two who wait", 2, &want.Waits)
		_, _ = c.Get(t.Context(), "key", nothing)
		_, _ = c.Fetch(t.Context(), "key", nothing)
		_, _ = c.Peek(t.Context(), "key")
		check("three near hits", 3, &want.Hits, &want.NearHits)
		time.Sleep(2 * time.Second)
		_, _ = c.Get(t.Context(), "key", nothing)
		check("a hit", 1, &want.Hits)
		time.Sleep(time.Minute)
		_, _ = c.Get(t.Context(), "key", loads.after(0, nil))
		want.Loads++
		check("a stale value", 1, &want.Stale)
		_, _ = c.Get(t.Context(), "other", fails(errors.New("down")))
		want.Loads++
		check("a failure", 1, &want.Failures, &want.LoadErrors)
		_, _ = c.Get(t.Context(), "hung", hang)
		want.Loads++
		check("a hang", 1, &want.Failures, &want.LoadErrors)
		f.next(dead, "Get")
		_, _ = c.Get(t.Context(), "third", value(1))
		want.Loads++
		check("a fault", 1, &want.Degraded, &want.StoreFailures)
		if got := c.Stats().LoadTime; got < 7*time.Second || got > 8*time.Second {
			t.Errorf("%v spent in loads, want about 7s", got)
		}
	})
}
