package cachefill_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

// TestLaw14RecursiveOverTwoCaches: the chain goes through another cache, and
// the same key in that one is another key.
func TestLaw14RecursiveOverTwoCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := newCache(t, s, &cachefill.Options[int]{Namespace: "a", MaxLoads: 1})
		b := newCache(t, s, &cachefill.Options[int]{Namespace: "b", MaxLoads: 1})
		start := time.Now()
		_, err := a.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
			return b.Get(ctx, "key", func(ctx context.Context) (int, error) {
				return a.Get(ctx, "key", nothing)
			})
		})
		if !errors.Is(err, cachefill.ErrRecursive) || time.Since(start) != 0 {
			t.Errorf("Get: %v after %v, want ErrRecursive at once", err, time.Since(start))
		}
		v, err := a.Get(t.Context(), "outer", func(ctx context.Context) (int, error) {
			return b.Get(ctx, "outer", func(ctx context.Context) (int, error) { return a.Get(ctx, "inner", value(1)) })
		})
		if v != 1 || err != nil {
			t.Errorf("Get of different keys = %v, %v, want 1", v, err)
		}
	})
}

// TestLaw14SlotHolderIsNotHeldUpByTheQueue: a flight that waits for a slot
// starts at once when a load that has one joins it, in whatever phase it is.
func TestLaw14SlotHolderIsNotHeldUpByTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{MaxLoads: 2})
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // has a slot for as long as the test likes
			_, _ = c.Get(t.Context(), "long", func(context.Context) (int, error) { <-release; return 0, nil })
		})
		wg.Go(func() { // has the other, and will need the leaf
			v, err := c.Get(t.Context(), "node", func(ctx context.Context) (int, error) {
				sleep(ctx, time.Second)
				start := time.Now()
				v, err := c.Get(ctx, "leaf", value(2))
				if took := time.Since(start); took != 0 {
					t.Errorf("the slot holder waited %v for the leaf", took)
				}
				return v, err
			})
			if v != 1 || err != nil {
				t.Errorf("Get of the node = %v, %v, want the leaf's 1", v, err)
			}
		})
		synctest.Wait()
		wg.Go(func() { // queues for a slot
			start := time.Now()
			v, err := c.Get(t.Context(), "leaf", value(1))
			if v != 1 || err != nil || time.Since(start) != time.Second {
				t.Errorf("Get of the leaf = %v, %v after %v, want 1 when the slot holder joined", v, err, time.Since(start))
			}
		})
		time.Sleep(2 * time.Second)
		close(release)
		wg.Wait()
	})
}

// TestLaw14NestedLoadsWaitForNoSlot, however deep and wide.
func TestLaw14NestedLoadsWaitForNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{MaxLoads: 1})
		var node func(key string, depth int) cachefill.Loader[int]
		node = func(key string, depth int) cachefill.Loader[int] {
			return func(ctx context.Context) (int, error) {
				if depth == 0 {
					return 1, nil
				}
				var wg sync.WaitGroup
				var sums [3]int
				for i := range sums {
					wg.Go(func() {
						child := key + string(rune('a'+i))
						sums[i], _ = c.Get(ctx, child, node(child, depth-1))
					})
				}
				wg.Wait()
				return sums[0] + sums[1] + sums[2], nil
			}
		}
		start := time.Now()
		if v, err := c.Get(t.Context(), "", node("", 4)); v != 81 || err != nil || time.Since(start) != 0 {
			t.Errorf("Get = %v, %v after %v, want 81 at once", v, err, time.Since(start))
		}
	})
}

// TestRefreshBeginsAfterTheCall: a load that was running before it is not good
// enough. Others get the older value meanwhile.
func TestRefreshBeginsAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		o := steady(cachefill.Options[int]{TTL: time.Minute, Stale: time.Hour})
		a, b := newCache(t, s, o), newCache(t, s, o)
		if err := a.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		var truth atomic.Int64
		truth.Store(2)
		load := func(ctx context.Context) (int, error) {
			v := truth.Load()
			sleep(ctx, 3*time.Second)
			return int(v), nil
		}
		_, _ = b.Get(t.Context(), "key", load) // refreshes in the background
		time.Sleep(time.Second)
		truth.Store(3)
		var wg sync.WaitGroup
		start := time.Now()
		for _, c := range []*cachefill.Cache[int]{a, a, b} {
			wg.Go(func() {
				v, err := c.Refresh(t.Context(), "key", load)
				if v != 3 || err != nil {
					t.Errorf("Refresh = %v, %v, want what it is now", v, err)
				}
			})
		}
		time.Sleep(time.Second)
		for _, c := range []*cachefill.Cache[int]{a, b} {
			if r, err := c.Fetch(t.Context(), "key", load); r.Value != 1 || r.Outcome != cachefill.Stale || err != nil {
				t.Errorf("Fetch meanwhile = %+v, %v, want the older value", r, err)
			}
		}
		wg.Wait()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if r, err := b.Fetch(t.Context(), "key", nothing); r.Value != 3 || err != nil {
			t.Errorf("Fetch at last = %+v, %v, want 3", r, err)
		}
	})
}

// TestPeekNeverLoadsNorWaits, whatever is under way.
func TestPeekNeverLoadsNorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), steady(cachefill.Options[int]{TTL: time.Minute, Stale: time.Minute, StaleIfError: time.Hour}))
		var wg sync.WaitGroup
		peek := func(want cachefill.Outcome, wantErr error) {
			t.Helper()
			start := time.Now()
			r, err := c.Peek(t.Context(), "key")
			if !errors.Is(err, wantErr) || err == nil && r.Outcome != want || time.Since(start) != 0 {
				t.Errorf("Peek = %+v, %v after %v, want %v, %v at once", r, err, time.Since(start), want, wantErr)
			}
		}
		peek(0, cachefill.ErrMiss)
		wg.Go(func() {
			_, _ = c.Get(t.Context(), "key", func(ctx context.Context) (int, error) { sleep(ctx, time.Second); return 1, nil })
		})
		synctest.Wait()
		peek(0, cachefill.ErrMiss)
		wg.Wait()
		synctest.Wait()
		peek(cachefill.Fresh, nil)
		time.Sleep(90 * time.Second)
		peek(cachefill.Stale, nil)
		time.Sleep(time.Minute)
		peek(0, cachefill.ErrMiss) // good enough only if a load fails
		if n := c.Stats().Loads; n != 1 {
			t.Errorf("%d loads, want 1", n)
		}
	})
}
