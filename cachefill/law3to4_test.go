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

func TestLaw3LateCallerLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		var source atomic.Int64 // the database
		source.Store(1)
		load := func(ctx context.Context) (int, error) {
			v := source.Load()
			sleep(ctx, 2*time.Second)
			return int(v), nil
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a.Get(t.Context(), "key", load) })
		time.Sleep(time.Second)
		source.Store(2)
		if err := b.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*cachefill.Cache[int]{a, b} {
			if v, err := c.Get(t.Context(), "key", load); v != 2 || err != nil {
				t.Errorf("Get after Invalidate = %v, %v, want the newer value 2", v, err)
			}
		}
		wg.Wait()
		if v, err := a.Get(t.Context(), "key", load); v != 2 || err != nil {
			t.Errorf("Get at last = %v, %v, want 2: the load that began before must not be stored", v, err)
		}
	})
}

func TestLaw3NearIsClearedByInvalidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		o := &cachefill.Options[int]{Near: 100, NearTTL: time.Second, Early: -1}
		a, b := newCache(t, s, o), newCache(t, s, o)
		var loads counter
		load := loads.after(time.Millisecond, nil)
		for _, c := range []*cachefill.Cache[int]{a, b} {
			if v, err := c.Get(t.Context(), "key", load); v != 1 || err != nil {
				t.Fatalf("Get = %v, %v, want 1", v, err)
			}
		}
		if err := a.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		if v, err := a.Get(t.Context(), "key", load); v != 2 || err != nil {
			t.Errorf("Get on the invalidating server = %v, %v, want 2 at once", v, err)
		}
		time.Sleep(time.Second)
		if v, err := b.Get(t.Context(), "key", load); v != 2 || err != nil {
			t.Errorf("Get on another server = %v, %v, want 2 after NearTTL", v, err)
		}
	})
}

func TestLaw4LeaderLeavesAndHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int](t, newStore(), nil)
		var loads counter
		load := loads.after(time.Second, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			_, err := c.Get(ctx, "key", load)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Millisecond {
				t.Errorf("leader: %v after %v, want its deadline after 100ms", err, time.Since(start))
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", load); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
			})
		}
		wg.Wait()
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

func TestLaw4AbandonedLoadFillsTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int](t, newStore(), nil)
		var loads counter
		load := loads.after(time.Second, nil)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, _ = c.Get(ctx, "key", load)
			cancel()
		}
		if v, err := c.Get(t.Context(), "key", load); v != 1 || err != nil {
			t.Errorf("Get = %v, %v, want the first load's value", v, err)
		}
	})
}

func TestLaw4AbandonedLoadIsCancelledByOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCache(t, s, &cachefill.Options[int]{CancelAbandoned: true})
		other := newCache[int](t, s, nil)
		var loads counter
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _ = c.Get(ctx, "key", loads.after(time.Hour, nil))
		start := time.Now()
		v, err := other.Get(t.Context(), "key", loads.after(time.Second, nil))
		if v != 2 || err != nil || time.Since(start) != time.Second {
			t.Errorf("Get elsewhere = %v, %v after %v, want 2 after one load: the lease is yielded", v, err, time.Since(start))
		}
	})
}
