package cachefill_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
)

// TestWindowsEndWhereTheySay: TTL, Stale and StaleIfError, a moment before and
// at their ends.
func TestWindowsEndWhereTheySay(t *testing.T) {
	const ms = time.Millisecond
	errDown := errors.New("down")
	for _, test := range []struct {
		after time.Duration
		fails bool
		want  cachefill.Outcome
	}{
		{time.Minute - ms, true, cachefill.Fresh},
		{time.Minute, true, cachefill.Stale},
		{time.Minute, false, cachefill.Stale},
		{2*time.Minute - ms, false, cachefill.Stale},
		{2 * time.Minute, false, cachefill.Loaded},
		{2 * time.Minute, true, cachefill.Stale},
		{4*time.Minute - ms, false, cachefill.Loaded},
		{4*time.Minute - ms, true, cachefill.Stale},
		{4 * time.Minute, true, cachefill.Failed},
		{4 * time.Minute, false, cachefill.Loaded},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCache(t, newStore(), steady(cachefill.Options[int]{
				TTL: time.Minute, Stale: time.Minute, StaleIfError: 3 * time.Minute}))
			if err := c.Set(t.Context(), "key", 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(test.after)
			r, err := c.Fetch(t.Context(), "key", func(context.Context) (int, error) {
				if test.fails {
					return 0, errDown
				}
				return 2, nil
			})
			if r.Outcome != test.want || (err != nil) != (test.want == cachefill.Failed) {
				t.Errorf("after %v, failing %v: %+v, %v, want %v", test.after, test.fails, r, err, test.want)
			}
			if r.Outcome == cachefill.Stale && (r.Value != 1 || r.Age != test.after) {
				t.Errorf("after %v: %+v, want the older value of that age", test.after, r)
			}
		})
	}
}

// TestExpireMarksStale, however fresh it was.
func TestExpireMarksStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		with := newCache(t, s, steady(cachefill.Options[int]{Stale: time.Minute, Near: 10}))
		if err := with.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		_, _ = with.Get(t.Context(), "key", nothing) // keeps it near
		if err := with.Expire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		if r, err := with.Peek(t.Context(), "key"); r.Value != 1 || r.Outcome != cachefill.Stale || err != nil {
			t.Errorf("Peek = %+v, %v, want the stale 1", r, err)
		}
		without := newCache(t, s, steady(cachefill.Options[int]{}))
		if r, err := without.Fetch(t.Context(), "key", value(2)); r.Value != 2 || r.Outcome != cachefill.Loaded || err != nil {
			t.Errorf("Fetch without Stale = %+v, %v, want a load", r, err)
		}
	})
}

// skewed is a store whose server's clock is not the process's.
type skewed struct {
	remote
	by *atomic.Int64
}

func (s skewed) Now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

// TestAgesFollowTheStoresClock, and never are negative when it jumps back.
func TestAgesFollowTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := skewed{newStore().(remote), new(atomic.Int64)}
		s.by.Store(int64(24 * time.Hour)) // ahead of this process
		c := newCache[int](t, s, steady(cachefill.Options[int]{TTL: time.Minute, Stale: time.Hour}))
		if err := c.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		fetch := func() cachefill.Result[int] {
			r, err := c.Fetch(t.Context(), "key", nothing)
			if err != nil || r.Value != 1 {
				t.Errorf("Fetch = %+v, %v, want 1", r, err)
			}
			return r
		}
		if r := fetch(); r.Outcome != cachefill.Fresh || r.Age != 30*time.Second {
			t.Errorf("%v, age %v, want fresh, 30s", r.Outcome, r.Age)
		}
		s.by.Add(-int64(time.Hour))
		if r := fetch(); r.Outcome != cachefill.Fresh || r.Age != 0 {
			t.Errorf("after a jump back: %v, age %v, want fresh, 0", r.Outcome, r.Age)
		}
		s.by.Add(int64(time.Hour + time.Minute))
		if r := fetch(); r.Outcome != cachefill.Stale || r.Age != 90*time.Second {
			t.Errorf("after a jump ahead: %v, age %v, want stale, 90s", r.Outcome, r.Age)
		}
	})
}

// TestOneEarlyRefreshInTheFleet: XFetch decides when, the lease decides who.
func TestOneEarlyRefreshInTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers, expiries = 6, 5
		s := newStore()
		o := &cachefill.Options[int]{TTL: time.Minute, Jitter: -1}
		var caches []*cachefill.Cache[int]
		for range servers {
			caches = append(caches, newCache(t, s, o))
		}
		var loads counter
		load := loads.after(time.Second, nil)
		if _, err := caches[0].Get(t.Context(), "key", load); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for int(loads.n.Load()) <= expiries {
			for _, c := range caches {
				r, err := c.Fetch(t.Context(), "key", load)
				if err != nil || r.Outcome != cachefill.Fresh {
					t.Fatalf("Fetch = %+v, %v, want a fresh value at any time", r, err)
				}
				// One load per life of a value: what is served is at most one
				// load older than the newest.
				if n := int(loads.n.Load()); r.Value < n-1 {
					t.Fatalf("got the value of load %d of %d", r.Value, n)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// TestOneClaimForManyStaleHits: a process refreshes a key once at a time.
func TestOneClaimForManyStaleHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &claims{Cache: newStore()}
		c := newCache(t, s, steady(cachefill.Options[int]{Stale: time.Hour}))
		if err := errors.Join(c.Set(t.Context(), "key", 1), c.Expire(t.Context(), "key")); err != nil {
			t.Fatal(err)
		}
		var loads counter
		for range 10 {
			if v, err := c.Get(t.Context(), "key", loads.after(time.Second, nil)); v != 1 || err != nil {
				t.Errorf("Get = %v, %v, want the stale 1", v, err)
			}
			synctest.Wait()
		}
		if len(s.requests) != 1 || loads.n.Load() != 1 {
			t.Errorf("%d claims and %d loads, want one", len(s.requests), loads.n.Load())
		}
	})
}

// TestEarlyNever: by option no hit refreshes before the end.
func TestEarlyNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), steady(cachefill.Options[int]{TTL: time.Minute}))
		var loads counter
		for range 59 {
			_, _ = c.Get(t.Context(), "key", loads.after(500*time.Millisecond, nil))
			time.Sleep(time.Second)
		}
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

// TestStoreKeepsNoLongerThanNeeded: the store's own expiry covers the windows,
// jitter or not.
func TestStoreKeepsNoLongerThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCache(t, s, &cachefill.Options[int]{TTL: time.Minute, Stale: time.Minute, StaleIfError: 3 * time.Minute})
		if err := c.Set(t.Context(), "set", 1); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Get(t.Context(), "loaded", value(1))
		synctest.Wait()
		for _, key := range []string{"fill:set", "fill:loaded"} {
			if _, err := s.Get(t.Context(), key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		time.Sleep(4*time.Minute - time.Millisecond)
		for _, key := range []string{"fill:set", "fill:loaded"} {
			if _, err := s.Get(t.Context(), key); err != nil {
				t.Errorf("%s before the end: %v", key, err)
			}
		}
		time.Sleep(time.Millisecond)
		for _, key := range []string{"fill:set", "fill:loaded"} {
			if _, err := s.Get(t.Context(), key); !errors.Is(err, store.ErrMiss) {
				t.Errorf("%s after the end: %v, want ErrMiss", key, err)
			}
		}
	})
}
