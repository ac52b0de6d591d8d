package cachefill_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

func TestLaw5PanicReachesItsCallerAndFreesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		var loads counter
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want the loader's own panic", p)
				}
			}()
			_, _ = a.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
				sleep(ctx, time.Second)
				panic("boom")
			})
			t.Error("Get returned instead of panicking")
		})
		synctest.Wait()
		for _, c := range []*cachefill.Cache[int]{a, a, b, b} {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", loads.after(time.Second, nil)); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 2*time.Second || loads.n.Load() != 1 {
			t.Errorf("others were served after %v by %d loads, want one more load", took, loads.n.Load())
		}
	})
}

func TestLaw5GoexitReachesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int](t, newStore(), nil)
		var wg sync.WaitGroup
		returned := false
		wg.Go(func() {
			_, _ = c.Get(t.Context(), "key", func(context.Context) (int, error) {
				runtime.Goexit()
				return 0, nil
			})
			returned = true
		})
		wg.Wait()
		if returned {
			t.Error("Get returned, want the goroutine to exit")
		}
		var loads counter
		if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get after it = %v, %v, want 1", v, err)
		}
	})
}

func TestLaw5HungLoaderLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		o := &cachefill.Options[int]{LoadTimeout: 3 * time.Second, MaxLoads: 1}
		a, b := newCache(t, s, o), newCache(t, s, o)
		hung := make(chan struct{})
		var loads counter
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := a.Get(t.Context(), "key", func(context.Context) (int, error) { <-hung; return 0, nil })
			if !errors.Is(err, cachefill.ErrLoadTimeout) {
				t.Errorf("leader: %v, want ErrLoadTimeout", err)
			}
		})
		synctest.Wait()
		for _, c := range []*cachefill.Cache[int]{a, b} {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", loads.after(time.Second, nil)); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("others were served after %v, want the deadline and one load", took)
		}
		if z := a.Stats().Zombies; z != 1 {
			t.Errorf("%d zombies, want 1", z)
		}
		close(hung)
		synctest.Wait()
		if z := a.Stats().Zombies; z != 0 {
			t.Errorf("%d zombies after the loader returned, want 0", z)
		}
	})
}
