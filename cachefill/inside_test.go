package cachefill_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

// steady are settings without chance.
func steady(o cachefill.Options[int]) *cachefill.Options[int] {
	o.Jitter, o.Early = -1, -1
	return &o
}

func TestSetTTL(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := newCache(t, newStore(), steady(cachefill.Options[int]{}))
			var loads counter
			load := func(ctx context.Context) (int, error) {
				cachefill.SetTTL(ctx, time.Nanosecond)
				cachefill.SetTTL(ctx, ttl) // the last word counts
				return loads.after(0, nil)(ctx)
			}
			_, _ = c.Get(t.Context(), "key", load)
			time.Sleep(ttl - time.Millisecond)
			if v, err := c.Get(t.Context(), "key", load); v != 1 || err != nil {
				t.Errorf("Get before %v = %v, %v, want 1", ttl, v, err)
			}
			time.Sleep(time.Millisecond)
			if v, err := c.Get(t.Context(), "key", load); v != 2 || err != nil {
				t.Errorf("Get after %v = %v, %v, want 2", ttl, v, err)
			}
		})
	}
}

// TestSetTTLZero: the value is stale at once. Within Stale it is served and
// replaced; otherwise it is not kept, and nobody waits because of it.
func TestSetTTLZero(t *testing.T) {
	for _, ttl := range []time.Duration{0, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var loads counter
			load := func(ctx context.Context) (int, error) {
				cachefill.SetTTL(ctx, ttl)
				return loads.after(0, nil)(ctx)
			}
			c := newCache(t, newStore(), steady(cachefill.Options[int]{Stale: time.Minute}))
			for i, want := range []cachefill.Outcome{cachefill.Loaded, cachefill.Stale, cachefill.Stale} {
				r, err := c.Fetch(t.Context(), "key", load)
				if err != nil || r.Outcome != want || r.Value != max(i, 1) {
					t.Errorf("Fetch %d within Stale = %+v, %v", i, r, err)
				}
				synctest.Wait()
			}
			s := newStore()
			a, b := newCache(t, s, steady(cachefill.Options[int]{})), newCache(t, s, steady(cachefill.Options[int]{}))
			start := time.Now()
			for _, c := range []*cachefill.Cache[int]{a, b, a, b} {
				if r, err := c.Fetch(t.Context(), "key", load); err != nil || r.Outcome != cachefill.Loaded {
					t.Errorf("Fetch = %+v, %v, want a load", r, err)
				}
				synctest.Wait()
			}
			if took := time.Since(start); took > time.Second/2 || a.Stats().StoreFailures > 0 {
				t.Errorf("took %v, %d store failures: want no waiting", took, a.Stats().StoreFailures)
			}
		})
	}
}

func TestSetTTLOfNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), steady(cachefill.Options[int]{}))
		var loads counter
		load := func(ctx context.Context) (int, error) {
			cachefill.SetTTL(ctx, time.Hour)
			return loads.after(0, cachefill.ErrNotFound)(ctx)
		}
		for range 3 {
			if _, err := c.Get(t.Context(), "key", load); !errors.Is(err, cachefill.ErrNotFound) {
				t.Errorf("Get: %v, want ErrNotFound", err)
			}
			time.Sleep(29 * time.Minute)
		}
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

// TestNotFoundKeepsItsDetails for those who waited for the load.
func TestNotFoundKeepsItsDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int](t, newStore(), nil)
		errRow := errors.New("no such row")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := c.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
					sleep(ctx, time.Second)
					return 0, fmt.Errorf("book 7: %w: %w", cachefill.ErrNotFound, errRow)
				})
				if !errors.Is(err, cachefill.ErrNotFound) || !errors.Is(err, errRow) {
					t.Errorf("Get: %v, want the loader's error", err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if _, err := c.Get(t.Context(), "key", value(1)); !errors.Is(err, cachefill.ErrNotFound) {
			t.Errorf("Get: %v, want ErrNotFound from the store", err)
		}
	})
}

func TestNotFoundNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		o := steady(cachefill.Options[int]{NotFoundTTL: -1, Stale: time.Minute})
		a, b := newCache(t, s, o), newCache(t, s, o)
		var loads counter
		start := time.Now()
		for _, c := range []*cachefill.Cache[int]{a, a, b, b} {
			if _, err := c.Get(t.Context(), "key", loads.after(0, cachefill.ErrNotFound)); !errors.Is(err, cachefill.ErrNotFound) {
				t.Errorf("Get: %v, want ErrNotFound", err)
			}
			synctest.Wait()
		}
		if got := loads.n.Load(); got != 4 || time.Since(start) > time.Second {
			t.Errorf("%d loads in %v, want 4 at once", got, time.Since(start))
		}
		if v, err := b.Get(t.Context(), "key", value(5)); v != 5 || err != nil {
			t.Errorf("Get of what is there now = %v, %v, want 5", v, err)
		}
	})
}

// TestNotModified: the old value is fresh again, for everybody.
func TestNotModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		o := steady(cachefill.Options[int]{TTL: time.Minute, StaleIfError: time.Hour})
		a, b := newCache(t, s, o), newCache(t, s, o)
		if err := a.Set(t.Context(), "key", 41); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		r, err := a.Fetch(t.Context(), "key", func(ctx context.Context) (int, error) {
			if old, ok := cachefill.Old[int](ctx); !ok || old != 41 {
				t.Errorf("Old = %v, %v, want 41", old, ok)
			}
			if _, ok := cachefill.Old[string](ctx); ok {
				t.Error("Old of another type is there")
			}
			return 0, fmt.Errorf("304: %w", cachefill.ErrNotModified)
		})
		if r.Value != 41 || err != nil || r.Outcome != cachefill.Loaded {
			t.Errorf("Fetch = %+v, %v, want 41", r, err)
		}
		synctest.Wait()
		r, err = b.Fetch(t.Context(), "key", nothing)
		if r.Value != 41 || err != nil || r.Outcome != cachefill.Fresh || r.Age != 0 {
			t.Errorf("Fetch elsewhere = %+v, %v, want a fresh 41", r, err)
		}
	})
}

// TestNotModifiedOfNothing is a failure like any other.
func TestNotModifiedOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int](t, newStore(), nil)
		for range 2 {
			_, err := c.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
				if old, ok := cachefill.Old[int](ctx); ok {
					t.Errorf("Old = %v, want none", old)
				}
				return 0, cachefill.ErrNotModified
			})
			if !errors.Is(err, cachefill.ErrNotModified) {
				t.Errorf("Get: %v, want ErrNotModified", err)
			}
		}
		if n := c.Stats().LoadErrors; n != 1 {
			t.Errorf("%d failed loads, want 1: it cools down", n)
		}
	})
}

// TestInsideWordsElsewhereDoNothing, and words of an inner load are the inner
// load's.
func TestInsideWordsElsewhereDoNothing(t *testing.T) {
	ctx := t.Context()
	cachefill.SetTTL(ctx, time.Hour)
	cachefill.NoStore(ctx)
	if v, ok := cachefill.Old[int](ctx); v != 0 || ok {
		t.Errorf("Old outside of a loader = %v, %v", v, ok)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), steady(cachefill.Options[int]{}))
		load := func(ctx context.Context) (int, error) {
			return c.Get(ctx, "inner", func(ctx context.Context) (int, error) {
				cachefill.NoStore(ctx)
				return 1, nil
			})
		}
		for _, want := range []cachefill.Outcome{cachefill.Loaded, cachefill.Fresh} {
			if r, err := c.Fetch(t.Context(), "outer", load); err != nil || r.Outcome != want {
				t.Errorf("Fetch of the outer = %+v, %v, want %v", r, err, want)
			}
			synctest.Wait()
			if r, err := c.Fetch(t.Context(), "inner", value(2)); err != nil || r.Outcome != cachefill.Loaded {
				t.Errorf("Fetch of the inner = %+v, %v, want a load", r, err)
			}
		}
	})
}

// TestLoaderHasTheCallersValues, and neither its deadline nor its end.
func TestLoaderHasTheCallersValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type who struct{}
		c := newCache[int](t, newStore(), nil)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), who{}, "ada"), time.Second)
		defer cancel()
		done := make(chan struct{})
		_, _ = c.Get(ctx, "key", func(ctx context.Context) (int, error) {
			defer close(done)
			if ctx.Value(who{}) != "ada" {
				t.Errorf("the caller's value is %v", ctx.Value(who{}))
			}
			at, ok := ctx.Deadline()
			if left := time.Until(at); !ok || left != 30*time.Second {
				t.Errorf("deadline in %v, want LoadTimeout", left)
			}
			if !sleep(ctx, 2*time.Second) {
				t.Errorf("the load's context ended with the caller's: %v", context.Cause(ctx))
			}
			return 1, nil
		})
		<-done
	})
}

// TestLaw7PrivateValueGoesToNobodyElse, also not to those who came before the
// load began and waited for it.
func TestLaw7PrivateValueGoesToNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFaulty()
		f.next(slow(10*time.Millisecond), "Get") // for everybody to come
		c := newCache(t, s, &cachefill.Options[int]{MaxLoads: 100})
		var loads counter
		var mu sync.Mutex
		seen := make(map[int]bool)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				v, err := c.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
					cachefill.NoStore(ctx)
					return loads.after(time.Second, nil)(ctx)
				})
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[v] {
					t.Errorf("Get = %v, %v, want a value of its own", v, err)
				}
				seen[v] = true
			})
		}
		wg.Wait()
	})
}
