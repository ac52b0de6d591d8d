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
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

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
		before := loads.n.Load()
		for range 100 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "key", loads.after(200*time.Millisecond, nil)); err != nil {
					t.Errorf("Get with an open breaker: %v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took > 201*time.Millisecond || loads.n.Load() != before+1 {
			t.Errorf("100 calls with an open breaker took %v and %d loads, want one load and 1ms", took, loads.n.Load()-before)
		}
		d.revive()
		time.Sleep(20 * time.Second)
		_, _ = c.Get(t.Context(), "key", loads.after(0, nil)) // may be what starts a probe
		time.Sleep(time.Second)
		_, _ = c.Get(t.Context(), "key", loads.after(0, nil))
		synctest.Wait() // for the fill
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

// Who came while the load ran is answered by the end of the lease, which proves
// that nothing was invalidated since.
func TestLaw7TooLargeCostsNobodyMoreThanTwoLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := remote{memstore.New(&memstore.Options{MaxBytes: 1000})}
		o := &cachefill.Options[[]byte]{Codec: cachefill.Raw()}
		a, b := newCache(t, s, o), newCache(t, s, o)
		var loads atomic.Int64
		load := func(ctx context.Context) ([]byte, error) {
			loads.Add(1)
			sleep(ctx, time.Second)
			return make([]byte, 10_000), nil
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			for _, c := range []*cachefill.Cache[[]byte]{a, b} {
				wg.Go(func() {
					v, err := c.Get(t.Context(), "key", load)
					if len(v) != 10_000 || err != nil {
						t.Errorf("Get = %d bytes, %v", len(v), err)
					}
				})
				time.Sleep(10 * time.Millisecond)
			}
		}
		wg.Wait()
		if took := time.Since(start); took > 2100*time.Millisecond || loads.Load() != 2 {
			t.Errorf("took %v and %d loads, want two loads, one in each process", took, loads.Load())
		}
		if n := a.Stats().NotStored; n != 1 {
			t.Errorf("counted %d values that were not stored, want 1", n)
		}
	})
}
