package cachefill_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
)

// coarse is a store whose server counts in steps of two seconds.
type coarse struct{ remote }

func (c coarse) Facts() store.Facts {
	f := c.remote.Facts()
	f.MinTTL = 2 * time.Second
	return f
}

// claims is a store that remembers the requests it got.
type claims struct {
	store.Cache
	mu       sync.Mutex // protects requests
	requests []store.Request
}

func (c *claims) Unwrap() any { return c.Cache }

func (c *claims) Claim(ctx context.Context, r store.Request) (store.Answer, error) {
	c.mu.Lock()
	c.requests = append(c.requests, r)
	c.mu.Unlock()
	return c.Cache.Claim(ctx, r)
}

func TestNewNamesWhatCannotBeMeant(t *testing.T) {
	type options = cachefill.Options[int]
	for _, test := range []struct {
		o    options
		want []string
	}{
		{options{TTL: -1}, []string{"Options.TTL", "-1ns"}},
		{options{Stale: -time.Second}, []string{"Options.Stale ", "-1s"}},
		{options{StaleIfError: -time.Second}, []string{"Options.StaleIfError", "-1s"}},
		{options{Lease: -time.Second}, []string{"Options.Lease", "-1s"}},
		{options{LoadTimeout: -time.Second}, []string{"Options.LoadTimeout", "-1s"}},
		{options{SoftTimeout: -time.Second}, []string{"Options.SoftTimeout", "-1s"}},
		{options{Wait: -time.Second}, []string{"Options.Wait", "-1s"}},
		{options{CoolDown: -time.Second}, []string{"Options.CoolDown", "-1s"}},
		{options{Uncacheable: -time.Second}, []string{"Options.Uncacheable", "-1s"}},
		{options{StoreBudget: -time.Second}, []string{"Options.StoreBudget", "-1s"}},
		{options{Near: 1, NearTTL: -time.Second}, []string{"Options.NearTTL", "-1s"}},
		{options{Namespace: "a:b"}, []string{"Options.Namespace", `"a:b"`}},
		{options{Namespace: "käse"}, []string{"Options.Namespace"}},
		{options{Namespace: "a\n"}, []string{"Options.Namespace"}},
		{options{MaxLoads: -1}, []string{"Options.MaxLoads", "-1"}},
		{options{Near: -1}, []string{"Options.Near", "-1"}},
		{options{NearTTL: time.Second}, []string{"Options.NearTTL", "Options.Near "}},
		{options{Degrade: cachefill.ServeHeld}, []string{"ServeHeld", "Options.Near"}},
		{options{Degrade: 9}, []string{"Options.Degrade", "9"}},
		{options{AfterWait: 9}, []string{"Options.AfterWait", "9"}},
		{options{Jitter: 1}, []string{"Options.Jitter", "1"}},
		{options{CompressAbove: -1}, []string{"Options.CompressAbove", "-1"}},
		{options{SoftTimeout: 30 * time.Second}, []string{"Options.SoftTimeout (30s)", "Options.LoadTimeout (30s)"}},
		{options{SoftTimeout: 2 * time.Second, LoadTimeout: time.Second}, []string{"Options.SoftTimeout (2s)", "Options.LoadTimeout (1s)"}},
		{options{SoftTimeout: time.Second, Stale: time.Hour}, []string{"Options.SoftTimeout", "Options.StaleIfError (0s)", "Options.Stale (1h0m0s)"}},
		{options{Jitter: math.NaN()}, []string{"Options.Jitter is NaN"}},
		{options{Early: math.NaN()}, []string{"Options.Early"}},
		{options{Errors: map[string]error{"": errors.New("x")}}, []string{"Options.Errors"}},
		{options{Errors: map[string]error{"down": nil}}, []string{"Options.Errors", "down"}},
		{options{Lease: time.Second}, []string{"Options.Lease", "1s", "2s"}},
	} {
		_, err := cachefill.New(coarse{newStore().(remote)}, &test.o)
		if err == nil {
			t.Errorf("New(%+v) accepts it", test.o)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("New: %q does not name %q", err, want)
			}
		}
	}
}

func TestNewWantsAStore(t *testing.T) {
	if _, err := cachefill.New[int](nil, nil); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("New(nil): %v, want an error that names the store", err)
	}
	if err := cachefill.SetDefault(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("SetDefault(nil): %v, want an error that names the store", err)
	}
}

func TestNegativeSwitchesOff(t *testing.T) {
	newCache(t, newStore(), &cachefill.Options[int]{NotFoundTTL: -1, Jitter: -1, Early: -1})
}

func TestNilLoader(t *testing.T) {
	c := newCache[int](t, newStore(), nil)
	if _, err := c.Get(t.Context(), "key", nil); !errors.Is(err, cachefill.ErrNilLoader) {
		t.Errorf("Get: %v, want ErrNilLoader", err)
	}
	if r, err := c.Fetch(t.Context(), "key", nil); !errors.Is(err, cachefill.ErrNilLoader) || r.Outcome != cachefill.Failed {
		t.Errorf("Fetch: %v, %v, want failed, ErrNilLoader", r.Outcome, err)
	}
	if _, err := c.Refresh(t.Context(), "key", nil); !errors.Is(err, cachefill.ErrNilLoader) {
		t.Errorf("Refresh: %v, want ErrNilLoader", err)
	}
}

// TestDefaults looks at what a cache without options does.
func TestDefaults(t *testing.T) {
	t.Run("TTL and Stale", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCache[int](t, newStore(), nil)
			var loads counter
			load := loads.after(0, nil)
			_, _ = c.Get(t.Context(), "key", load)
			time.Sleep(53 * time.Second)
			if v, _ := c.Get(t.Context(), "key", load); v != 1 {
				t.Errorf("Get after 53s = %v, want the first value", v)
			}
			time.Sleep(7 * time.Second)
			if v, _ := c.Get(t.Context(), "key", load); v != 2 {
				t.Errorf("Get after 60s = %v, want a second load", v)
			}
		})
	})
	t.Run("NotFoundTTL is at most TTL", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCache(t, newStore(), &cachefill.Options[int]{TTL: time.Second})
			var loads counter
			for range 2 {
				_, _ = c.Get(t.Context(), "key", loads.after(0, cachefill.ErrNotFound))
				time.Sleep(time.Second)
			}
			if got := loads.n.Load(); got != 2 {
				t.Errorf("%d loads, want 2", got)
			}
		})
	})
	t.Run("Wait and LoadTimeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCache[int](t, newStore(), nil)
			start := time.Now()
			var ended time.Duration
			_, err := c.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				ended = time.Since(start)
				return 0, ctx.Err()
			})
			if took := time.Since(start); !errors.Is(err, cachefill.ErrBusy) || took != 10*time.Second {
				t.Errorf("Get: %v after %v, want ErrBusy after 10s", err, took)
			}
			time.Sleep(21 * time.Second)
			synctest.Wait()
			if ended != 30*time.Second {
				t.Errorf("the load's context ended after %v, want 30s", ended)
			}
		})
	})
	t.Run("MaxLoads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			most := mostLoads(t, newCache[int](t, newStore(), nil))
			if want := int64(4 * runtime.GOMAXPROCS(0)); most != want {
				t.Errorf("%d loads at once, want %d", most, want)
			}
		})
	})
}

func TestDefaultsOfTheClaim(t *testing.T) {
	claim := func(s store.Cache, o *cachefill.Options[int]) store.Request {
		t.Helper()
		spy := &claims{Cache: s}
		var loads counter
		_, err := newCache(t, spy, o).Get(t.Context(), "key", loads.after(0, nil))
		if err != nil || len(spy.requests) != 1 {
			t.Fatalf("Get: %v after %d claims, want one", err, len(spy.requests))
		}
		return spy.requests[0]
	}
	r := claim(newStore(), nil)
	if r.Key != "fill:key" || r.TTL != 2*time.Second || !strings.Contains(r.Note.Owner, "cachefill") || r.Note.PID == 0 {
		t.Errorf("claim by default: key %q, lease %v, note %v", r.Key, r.TTL, r.Note)
	}
	r = claim(newStore(), &cachefill.Options[int]{Namespace: "pages", Owner: "billing", Lease: time.Second})
	if r.Key != "pages:key" || r.TTL != time.Second || r.Note.Owner != "billing" {
		t.Errorf("claim with options: key %q, lease %v, note %v", r.Key, r.TTL, r.Note)
	}
	if r = claim(coarse{newStore().(remote)}, nil); r.TTL != 3*time.Second {
		t.Errorf("claim at a store that counts 2s: lease %v, want 3s", r.TTL)
	}
}

// TestNamespacesAreApart and sharing one shares the entries.
func TestNamespacesAreApart(t *testing.T) {
	s := newStore()
	a := newCache(t, s, &cachefill.Options[int]{Namespace: "a"})
	alsoA := newCache(t, s, &cachefill.Options[int]{Namespace: "a"})
	b := newCache(t, s, &cachefill.Options[int]{Namespace: "b"})
	if err := a.Set(t.Context(), "key", 1); err != nil {
		t.Fatal(err)
	}
	if r, err := alsoA.Peek(t.Context(), "key"); err != nil || r.Value != 1 {
		t.Errorf("Peek in the same namespace = %+v, %v, want 1", r, err)
	}
	if r, err := b.Peek(t.Context(), "key"); !errors.Is(err, cachefill.ErrMiss) {
		t.Errorf("Peek in another namespace = %+v, %v, want ErrMiss", r, err)
	}
}
