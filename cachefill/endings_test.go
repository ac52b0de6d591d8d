package cachefill_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

// boom is a loader that panics after d.
func boom(d time.Duration) cachefill.Loader[int] {
	return func(ctx context.Context) (int, error) {
		sleep(ctx, d)
		panic("boom")
	}
}

// hang is a loader that returns only when its context ends.
func hang(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// panics reports whether f panics with "boom".
func panics(f func()) (yes bool) {
	defer func() { yes = recover() == "boom" }()
	f()
	return false
}

// TestLaw5SecondPanicInARowIsShared: one may be the request's, two are the
// key's. The count survives a change of server.
func TestLaw5SecondPanicInARowIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		if !panics(func() { _, _ = a.Get(t.Context(), "key", boom(0)) }) {
			t.Error("the first panic did not reach its caller")
		}
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() {
			if !panics(func() { _, _ = b.Get(t.Context(), "key", boom(time.Second)) }) {
				t.Error("the second panic did not reach its caller")
			}
		})
		synctest.Wait()
		var loads counter
		for _, c := range []*cachefill.Cache[int]{a, b} {
			wg.Go(func() {
				_, err := c.Get(t.Context(), "key", loads.after(0, nil))
				if !errors.Is(err, cachefill.ErrPanicked) || !strings.Contains(err.Error(), "boom") {
					t.Errorf("Get of who waits: %v, want ErrPanicked with the panic's text", err)
				}
			})
		}
		wg.Wait()
		if got := loads.n.Load(); got != 0 {
			t.Errorf("%d loads while it cools down, want none", got)
		}
		time.Sleep(5 * time.Second)
		if v, err := a.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get after the cool-down = %v, %v, want 1", v, err)
		}
	})
}

func TestLaw5SecondHangInARowIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		o := &cachefill.Options[int]{LoadTimeout: 2 * time.Second}
		a, b := newCache(t, s, o), newCache(t, s, o)
		for _, c := range []*cachefill.Cache[int]{a, b} {
			if _, err := c.Get(t.Context(), "key", hang); !errors.Is(err, cachefill.ErrLoadTimeout) {
				t.Errorf("Get: %v, want ErrLoadTimeout", err)
			}
			synctest.Wait()
		}
		start := time.Now()
		for _, c := range []*cachefill.Cache[int]{a, b} {
			_, err := c.Get(t.Context(), "key", hang)
			if !errors.Is(err, cachefill.ErrLoadTimeout) || !errors.Is(err, cachefill.ErrLoadFailed) || time.Since(start) != 0 {
				t.Errorf("Get while it cools down: %v after %v, want ErrLoadTimeout at once", err, time.Since(start))
			}
		}
	})
}

// TestLaw5PanicThatNobodyGetsIsLogged: in a background refresh, and when its
// caller has left, was served an older value, or waited long enough.
func TestLaw5PanicThatNobodyGetsIsLogged(t *testing.T) {
	type options = cachefill.Options[int]
	for name, test := range map[string]struct {
		o     options
		after time.Duration // age of the value when it is asked for
		call  func(ctx context.Context, c *cachefill.Cache[int])
	}{
		"background refresh": {
			options{TTL: time.Minute, Stale: time.Hour}, 2 * time.Minute,
			func(ctx context.Context, c *cachefill.Cache[int]) { _, _ = c.Get(ctx, "key", boom(time.Second)) },
		},
		"caller left": {
			options{TTL: time.Minute}, 2 * time.Minute,
			func(ctx context.Context, c *cachefill.Cache[int]) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, _ = c.Get(ctx, "key", boom(2*time.Second))
			},
		},
		"caller served": {
			options{TTL: time.Minute, StaleIfError: time.Hour, SoftTimeout: time.Second}, 2 * time.Minute,
			func(ctx context.Context, c *cachefill.Cache[int]) { _, _ = c.Get(ctx, "key", boom(2*time.Second)) },
		},
		"caller waited long enough": {
			options{TTL: time.Minute, Wait: time.Second}, 2 * time.Minute,
			func(ctx context.Context, c *cachefill.Cache[int]) { _, _ = c.Get(ctx, "key", boom(2*time.Second)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer // its handler has a lock
				var log eventLog
				o := test.o
				o.Logger, o.OnEvent = slog.New(slog.NewTextHandler(&logged, nil)), log.add
				c := newCache(t, newStore(), steady(o))
				if err := c.Set(t.Context(), "key", 1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.after)
				test.call(t.Context(), c)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				text := logged.String()
				if strings.Count(text, "boom") == 0 || !strings.Contains(text, "key=key") || !strings.Contains(text, "endings_test.go") {
					t.Errorf("logged %q, want the panic, the key and the stack", text)
				}
				if n := len(log.of(cachefill.LoadPanicked)); n != 1 {
					t.Errorf("%d events LoadPanicked, want 1", n)
				}
			})
		})
	}
}

// TestLaw5PanicThatItsCallerGotIsNotLogged: nothing is logged that is returned.
func TestLaw5PanicThatItsCallerGotIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		c := newCache(t, newStore(), &cachefill.Options[int]{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if !panics(func() { _, _ = c.Get(t.Context(), "key", boom(time.Second)) }) {
			t.Error("the panic did not reach its caller")
		}
		synctest.Wait()
		if logged.Len() > 0 {
			t.Errorf("logged %q", &logged)
		}
	})
}

// TestLaw5SlotIsGivenBack at every ending.
func TestLaw5SlotIsGivenBack(t *testing.T) {
	endings := map[string]cachefill.Loader[int]{
		"value":  value(1),
		"error":  func(context.Context) (int, error) { return 0, errors.New("down") },
		"panic":  boom(0),
		"goexit": func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
		"hang":   hang,
		"deaf":   func(context.Context) (int, error) { time.Sleep(time.Minute); return 0, nil },
		"absent": func(context.Context) (int, error) { return 0, cachefill.ErrNotFound },
		"private": func(ctx context.Context) (int, error) {
			cachefill.NoStore(ctx)
			return 1, nil
		},
	}
	for name, load := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, newStore(), &cachefill.Options[int]{MaxLoads: 1, LoadTimeout: time.Second})
				var wg sync.WaitGroup
				wg.Go(func() { _ = panics(func() { _, _ = c.Get(t.Context(), "key", load) }) })
				wg.Wait()
				start := time.Now()
				if v, err := c.Get(t.Context(), "other", value(2)); v != 2 || err != nil || time.Since(start) != 0 {
					t.Errorf("the next load: %v, %v after %v, want 2 at once", v, err, time.Since(start))
				}
			})
		})
	}
}

// TestLaw6ErrorsOfCallersAreNotShared: a loader that obeys the context of its
// caller, instead of its own, fails for that caller alone.
func TestLaw6ErrorsOfCallersAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := a.Get(ctx, "key", func(context.Context) (int, error) { return hang(ctx) })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Get of the impatient: %v, want its own deadline", err)
			}
		})
		synctest.Wait()
		var loads counter
		for _, c := range []*cachefill.Cache[int]{a, a, b} {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", loads.after(time.Second, nil)); v != 1 || err != nil {
					t.Errorf("Get of who waits = %v, %v, want 1", v, err)
				}
			})
		}
		wg.Wait()
	})
}

// TestLaw6RefreshDoesNotHideItsFailure behind the older value.
func TestLaw6RefreshDoesNotHideItsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), steady(cachefill.Options[int]{Stale: time.Hour}))
		if err := c.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		errDown := errors.New("down")
		for range 2 {
			v, err := c.Refresh(t.Context(), "key", func(context.Context) (int, error) { return 0, errDown })
			if err == nil || !strings.Contains(err.Error(), errDown.Error()) {
				t.Errorf("Refresh = %v, %v, want the loader's error", v, err)
			}
			synctest.Wait()
		}
		if v, err := c.Get(t.Context(), "key", nothing); v != 1 || err != nil {
			t.Errorf("Get = %v, %v, want the older value", v, err)
		}
	})
}

// TestLaw6CoolDownCaps: to 5 s while callers get errors, to 30 s while an older
// value is served.
func TestLaw6CoolDownCaps(t *testing.T) {
	for stale, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 24 * time.Hour: 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			o := steady(cachefill.Options[int]{TTL: time.Minute, StaleIfError: stale})
			caches := []*cachefill.Cache[int]{newCache(t, s, o), newCache(t, s, o), newCache(t, s, o)}
			if err := caches[0].Set(t.Context(), "key", 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			var last time.Time
			var widest time.Duration
			for i := range 3000 {
				_, err := caches[i%3].Get(t.Context(), "key", func(context.Context) (int, error) {
					if !last.IsZero() {
						widest = max(widest, time.Since(last))
					}
					last = time.Now()
					return 0, errors.New("down")
				})
				if (err == nil) != (stale > 0) {
					t.Fatalf("Get: %v with %v of StaleIfError", err, stale)
				}
				synctest.Wait()
				time.Sleep(100 * time.Millisecond)
			}
			if widest < want || widest > want+2*time.Second {
				t.Errorf("with %v of StaleIfError: up to %v between loads, want %v", stale, widest, want)
			}
		})
	}
}

// TestLaw4NobodyJoinsADyingFlight: callers come and go while loads are
// cancelled because their last caller left. Who stays gets a value.
func TestLaw4NobodyJoinsADyingFlight(t *testing.T) {
	s := newStore()
	o := patient(cachefill.Options[int]{CancelAbandoned: true, TTL: time.Millisecond, MaxLoads: 100})
	caches := []*cachefill.Cache[int]{newCache(t, s, o), newCache(t, s, o)}
	load := func(ctx context.Context) (int, error) {
		if !sleep(ctx, time.Millisecond) {
			return 0, ctx.Err()
		}
		return 1, nil
	}
	var stayed atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1500))*time.Microsecond)
				if i%4 == 0 { // this one stays
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
				}
				v, err := caches[i%2].Get(ctx, "key", load)
				switch {
				case err == nil && v == 1:
					stayed.Add(1)
				case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
					t.Errorf("Get = %v, %v with a context of %v", v, err, ctx.Err())
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if stayed.Load() < 400 {
		t.Errorf("%d calls got a value, want at least the 400 that stayed", stayed.Load())
	}
}

// TestLaw4WaitOverIsLeaving: who got ErrBusy has left; a load that nobody waits
// for any longer is cancelled by option.
func TestLaw4WaitOverIsLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{CancelAbandoned: true, Wait: time.Second})
		ended := make(chan struct{})
		_, err := c.Get(t.Context(), "key", func(ctx context.Context) (int, error) {
			defer close(ended)
			return hang(ctx)
		})
		if !errors.Is(err, cachefill.ErrBusy) {
			t.Errorf("Get: %v, want ErrBusy", err)
		}
		start := time.Now()
		<-ended
		if took := time.Since(start); took > time.Second {
			t.Errorf("the load went on for %v after its last caller", took)
		}
	})
}

// TestLaw4RefreshInTheBackgroundIsNobodys: a caller who leaves while it goes on
// does not cancel it.
func TestLaw4RefreshInTheBackgroundIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, faults := newFaulty()
		c := newCache(t, s, steady(cachefill.Options[int]{
			CancelAbandoned: true, TTL: time.Minute, Stale: time.Hour, StoreBudget: time.Second}))
		if err := c.Set(t.Context(), "key", 41); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		var loads counter
		if v, err := c.Get(t.Context(), "key", loads.after(10*time.Second, nil)); v != 41 || err != nil {
			t.Fatalf("Get = %v, %v, want the stale 41", v, err)
		}
		time.Sleep(time.Second)
		faults.set(slow(500*time.Millisecond), "Get")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = c.Get(ctx, "key", nothing)
		faults.clear()
		time.Sleep(10 * time.Second)
		if v, err := c.Get(t.Context(), "key", nothing); v != 1 || err != nil {
			t.Errorf("Get = %v, %v, want the refreshed 1", v, err)
		}
	})
}

// What a loader was refused by another cache says something of this server, or
// of one call, and nothing of the key.
func TestLaw6RefusalsInsideALoadAreNotShared(t *testing.T) {
	for _, refusal := range []error{cachefill.ErrBusy, cachefill.ErrUnavailable, cachefill.ErrClosed} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
			if _, err := a.Get(t.Context(), "key", fails(refusal)); !errors.Is(err, refusal) {
				t.Errorf("Get: %v, want %v", err, refusal)
			}
			if v, err := b.Get(t.Context(), "key", value(1)); v != 1 || err != nil {
				t.Errorf("Get elsewhere after %v = %v, %v, want 1", refusal, v, err)
			}
		})
	}
}
