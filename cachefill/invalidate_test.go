package cachefill_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/storetest"
)

// TestLaw3InvalidationFreesItsOwnServer: who comes after it does not wait for
// the load that it overtook, wake-ups or not.
func TestLaw3InvalidationFreesItsOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, f := neighbours(t, nil)
		f.set(dead, "Event")
		var loads counter
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a.Get(t.Context(), "key", loads.after(600*time.Millisecond, nil)) })
		time.Sleep(100 * time.Millisecond)
		if err := a.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if v, err := a.Get(t.Context(), "key", loads.after(0, nil)); v != 2 || err != nil || time.Since(start) != 0 {
			t.Errorf("Get after Invalidate = %v, %v after %v, want 2 at once", v, err, time.Since(start))
		}
		wg.Wait()
	})
}

// TestLaw3NearIsClearedAfterTheStoreToo: a reader between the two puts the older
// value near.
func TestLaw3NearIsClearedAfterTheStoreToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(faults)
		f.clear()
		silent := struct{ store.Cache }{newStore()} // announces nothing
		a := newCache(t, storetest.FaultyCache(silent, f.inject), steady(cachefill.Options[int]{
			Near: 10, NearTTL: time.Hour, TTL: time.Hour}))
		if err := a.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		f.set(storetest.Fault{Delay: 50 * time.Millisecond}, "Delete", "DeleteAll")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := a.Invalidate(t.Context(), "key"); err != nil {
				t.Errorf("Invalidate: %v", err)
			}
		})
		time.Sleep(20 * time.Millisecond)
		if v, err := a.Get(t.Context(), "key", nothing); v != 1 || err != nil {
			t.Errorf("Get before the store has heard = %v, %v, want 1", v, err)
		}
		wg.Wait()
		if v, err := a.Get(t.Context(), "key", value(2)); v != 2 || err != nil {
			t.Errorf("Get after Invalidate = %v, %v, want 2", v, err)
		}
	})
}

// TestLaw3LoadIsNotStoredIfTheStoreCouldNotBeTold: the value is older than an
// invalidation that has not reached the store yet.
func TestLaw3LoadIsNotStoredIfTheStoreCouldNotBeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, f := neighbours(t, nil)
		f.set(dead, "Delete", "DeleteAll")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = a.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
				sleep(ctx, 40*time.Millisecond) // before the first retry
				return 1, nil
			})
		})
		time.Sleep(20 * time.Millisecond)
		if err := a.Invalidate(t.Context(), "key"); !errors.Is(err, cachefill.ErrUnavailable) {
			t.Errorf("Invalidate: %v, want ErrUnavailable", err)
		}
		wg.Wait()
		time.Sleep(5 * time.Millisecond)
		if r, err := b.Peek(t.Context(), "key"); !errors.Is(err, cachefill.ErrMiss) {
			t.Errorf("Peek elsewhere = %+v, %v, want ErrMiss", r, err)
		}
	})
}

// TestInvalidateReportsWhatItCannot: no keys are no error, and a context that
// has ended is its error.
func TestInvalidateReportsWhatItCannot(t *testing.T) {
	c := newCache[int](t, newStore(), nil)
	if err := c.Invalidate(t.Context()); err != nil {
		t.Errorf("Invalidate of nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Invalidate": c.Invalidate(ctx, "key"), "Expire": c.Expire(ctx, "key"), "Set": c.Set(ctx, "key", 1),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's end", name, err)
		}
	}
}
