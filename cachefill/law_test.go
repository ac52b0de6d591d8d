package cachefill_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
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

func TestLaw6CoolDownDoublesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		caches := []*cachefill.Cache[int]{newCache[int](t, s, nil), newCache[int](t, s, nil)}
		var loads counter
		fail := loads.after(0, errors.New("down"))
		start := time.Now()
		var at []time.Duration
		for i := 0; time.Since(start) < 8*time.Second; i++ {
			before := loads.n.Load()
			_, err := caches[i%2].Get(t.Context(), "key", fail)
			if err == nil {
				t.Fatal("Get succeeded")
			}
			if loads.n.Load() != before {
				at = append(at, time.Since(start))
			} else if !errors.Is(err, cachefill.ErrLoadFailed) {
				t.Fatalf("Get while cooling down: %v, want ErrLoadFailed", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(at) != 4 || at[1] < time.Second || at[2]-at[1] < 2*time.Second || at[3]-at[2] < 4*time.Second {
			t.Errorf("loads at %v, want them about 1, 2 and 4 s apart", at)
		}
	})
}

func TestLaw6BrokenServerLeavesTheNextTryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		broken, healthy := newCache[int](t, s, nil), newCache[int](t, s, nil)
		_, err := broken.Get(t.Context(), "key", func(context.Context) (int, error) { return 0, errors.New("broken") })
		if err == nil {
			t.Fatal("Get succeeded")
		}
		time.Sleep(1100 * time.Millisecond)
		_, err = broken.Get(t.Context(), "key", func(context.Context) (int, error) {
			t.Error("the server that failed loads first again")
			return 0, nil
		})
		if !errors.Is(err, cachefill.ErrLoadFailed) {
			t.Errorf("Get on the broken server: %v, want ErrLoadFailed", err)
		}
		var loads counter
		if v, err := healthy.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get on a healthy server = %v, %v, want 1", v, err)
		}
		synctest.Wait() // for the fill
		if v, err := broken.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get on the broken server = %v, %v, want the other's value", v, err)
		}
	})
}

func TestLaw6StaleIfError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{
			TTL: time.Minute, StaleIfError: time.Hour, SoftTimeout: time.Second, Early: -1})
		var loads counter
		if _, err := c.Get(t.Context(), "key", loads.after(0, nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		r, err := c.Fetch(t.Context(), "key", loads.after(0, errors.New("down")))
		if err != nil || r.Value != 1 || r.Outcome != cachefill.Stale || r.Age < 2*time.Minute {
			t.Errorf("Fetch with a failing loader = %+v, %v, want the stale 1", r, err)
		}
		time.Sleep(time.Minute)
		start := time.Now()
		r, err = c.Fetch(t.Context(), "key", loads.after(10*time.Second, nil))
		if err != nil || r.Value != 1 || r.Outcome != cachefill.Stale || time.Since(start) != time.Second {
			t.Errorf("Fetch with a slow loader = %+v, %v after %v, want the stale 1 after 1s", r, err, time.Since(start))
		}
		time.Sleep(10 * time.Second)
		if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 3 || err != nil {
			t.Errorf("Get after the slow load = %v, %v, want 3", v, err)
		}
	})
}

func TestLaw7PrivateValuesAreLoadedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache(t, s, &cachefill.Options[int]{MaxLoads: 100}), newCache(t, s, &cachefill.Options[int]{MaxLoads: 100})
		var loads counter
		load := loads.after(time.Second, nil)
		private := func(ctx context.Context) (int, error) {
			cachefill.NoStore(ctx)
			return load(ctx)
		}
		var mu sync.Mutex
		seen := make(map[int]bool)
		round := func(want time.Duration) {
			var wg sync.WaitGroup
			start := time.Now()
			for _, c := range []*cachefill.Cache[int]{a, b} {
				for range 20 {
					wg.Go(func() {
						v, err := c.Get(t.Context(), "key", private)
						mu.Lock()
						defer mu.Unlock()
						if err != nil || seen[v] {
							t.Errorf("Get = %v, %v, want a value of its own", v, err)
						}
						seen[v] = true
					})
				}
			}
			wg.Wait()
			if took := time.Since(start); took > want {
				t.Errorf("took %v, want at most %v", took, want)
			}
		}
		round(2 * time.Second)
		round(time.Second)
	})
}

func TestLaw12AnyKeyAndValue(t *testing.T) {
	c := newCache(t, newStore(), &cachefill.Options[[]byte]{Codec: cachefill.Raw()})
	for _, s := range []string{"", "a b\r\n", "\x00{}", "hg\x01", string(make([]byte, 100_000))} {
		for range 2 {
			v, err := c.Get(t.Context(), s, func(context.Context) ([]byte, error) { return []byte(s), nil })
			if string(v) != s || err != nil {
				t.Errorf("Get(%.10q) = %.10q, %v", s, v, err)
			}
		}
	}
}

func TestNotFoundIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		var loads counter
		load := loads.after(0, cachefill.ErrNotFound)
		for _, c := range []*cachefill.Cache[int]{a, a, b} {
			if _, err := c.Get(t.Context(), "key", load); !errors.Is(err, cachefill.ErrNotFound) {
				t.Errorf("Get: %v, want ErrNotFound", err)
			}
		}
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
		time.Sleep(11 * time.Second)
		_, _ = a.Get(t.Context(), "key", load)
		if got := loads.n.Load(); got != 2 {
			t.Errorf("%d loads after NotFoundTTL, want 2", got)
		}
	})
}

func TestLaw14NestedLoadsDoNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{MaxLoads: 1})
		leaf := func(ctx context.Context) (int, error) { sleep(ctx, time.Second); return 1, nil }
		node := func(ctx context.Context) (int, error) { return c.Get(ctx, "leaf", leaf) }
		var wg sync.WaitGroup
		for _, key := range []string{"a", "b", "c"} {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), key, node); v != 1 || err != nil {
					t.Errorf("Get(%q) = %v, %v, want 1", key, v, err)
				}
			})
		}
		wg.Go(func() {
			if v, err := c.Get(t.Context(), "leaf", leaf); v != 1 || err != nil {
				t.Errorf("Get(leaf) = %v, %v, want 1", v, err)
			}
		})
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestLaw14SameKeyInOneChainIsRecursive(t *testing.T) {
	c := newCache[int](t, newStore(), nil)
	var load func(ctx context.Context) (int, error)
	load = func(ctx context.Context) (int, error) {
		return c.Get(ctx, "b", func(ctx context.Context) (int, error) { return c.Get(ctx, "a", load) })
	}
	if _, err := c.Get(t.Context(), "a", load); !errors.Is(err, cachefill.ErrRecursive) {
		t.Errorf("Get: %v, want ErrRecursive", err)
	}
}

// deaf is a store that stops answering, whatever the context says.
type deaf struct {
	store.Cache
	mu   sync.Mutex
	dead chan struct{} // nil while it answers
}

func (d *deaf) die() { d.mu.Lock(); d.dead = make(chan struct{}); d.mu.Unlock() }

func (d *deaf) revive() { d.mu.Lock(); close(d.dead); d.dead = nil; d.mu.Unlock() }

func (d *deaf) wait() {
	d.mu.Lock()
	dead := d.dead
	d.mu.Unlock()
	if dead != nil {
		<-dead
	}
}

func (d *deaf) Get(ctx context.Context, key string) (store.Entry, error) {
	d.wait()
	return d.Cache.Get(ctx, key)
}

func (d *deaf) Claim(ctx context.Context, r store.Request) (store.Answer, error) {
	d.wait()
	return d.Cache.Claim(ctx, r)
}

func (d *deaf) Fill(ctx context.Context, l store.Lease, v []byte, ttl time.Duration) error {
	d.wait()
	return d.Cache.Fill(ctx, l, v, ttl)
}

func (d *deaf) Delete(ctx context.Context, key string) error {
	d.wait()
	return d.Cache.Delete(ctx, key)
}

func TestLaw9DeadStoreCostsOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{Cache: newStore()}
		c := newCache[int](t, d, nil)
		d.die()
		var loads counter
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				start := time.Now()
				r, err := c.Fetch(t.Context(), "key", loads.after(200*time.Millisecond, nil))
				if err != nil || r.Outcome != cachefill.Degraded {
					t.Errorf("Fetch = %+v, %v, want a degraded value", r, err)
				}
				if took := time.Since(start); took > 300*time.Millisecond {
					t.Errorf("a call took %v, want at most the budget and one load", took)
				}
			})
		}
		wg.Wait()
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
		for i := range 10 { // opens the breaker
			_, _ = c.Get(t.Context(), string(rune('a'+i)), loads.after(0, nil))
		}
		start := time.Now()
		if _, err := c.Get(t.Context(), "key", loads.after(0, nil)); err != nil || time.Since(start) != 0 {
			t.Errorf("Get with an open breaker: %v after %v, want no wait", err, time.Since(start))
		}
		d.revive()
		time.Sleep(20 * time.Second)
		_, _ = c.Get(t.Context(), "key", loads.after(0, nil)) // may be what starts a probe
		time.Sleep(time.Second)
		_, _ = c.Get(t.Context(), "key", loads.after(0, nil))
		if r, err := c.Fetch(t.Context(), "key", loads.after(0, nil)); err != nil || r.Outcome != cachefill.Fresh {
			t.Errorf("Fetch after the store is back = %+v, %v, want fresh", r, err)
		}
	})
}

func TestLaw9FailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{Cache: newStore()}
		c := newCache(t, d, &cachefill.Options[int]{Degrade: cachefill.FailFast})
		d.die()
		defer d.revive()
		var loads counter
		if _, err := c.Get(t.Context(), "key", loads.after(0, nil)); !errors.Is(err, cachefill.ErrUnavailable) {
			t.Errorf("Get: %v, want ErrUnavailable", err)
		}
		if loads.n.Load() != 0 {
			t.Error("loaded, want none")
		}
	})
}

func TestInvalidateIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{Cache: newStore()}
		c := newCache[int](t, d, nil)
		var loads counter
		if _, err := c.Get(t.Context(), "key", loads.after(0, nil)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.die()
		if err := c.Invalidate(t.Context(), "key"); !errors.Is(err, cachefill.ErrUnavailable) {
			t.Errorf("Invalidate: %v, want ErrUnavailable", err)
		}
		d.revive()
		time.Sleep(10 * time.Second)
		if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 2 || err != nil {
			t.Errorf("Get = %v, %v, want 2: the invalidation was retried", v, err)
		}
	})
}
