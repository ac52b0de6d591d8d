package cachefill_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/storetest"
)

// TestLaw5CloseDrains: a load that runs is waited for, its callers on every
// server get its value, and it is stored.
func TestLaw5CloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		closing, other := newCache[int](t, s, nil), newCache[int](t, s, nil)
		var loads counter
		var wg sync.WaitGroup
		for _, c := range []*cachefill.Cache[int]{closing, other} {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", loads.after(3*time.Second, nil)); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
			})
			synctest.Wait()
		}
		start := time.Now()
		if err := closing.Close(t.Context()); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("Close: %v after %v, want it to wait for the load", err, time.Since(start))
		}
		wg.Wait()
		if r, err := other.Peek(t.Context(), "key"); r.Value != 1 || err != nil {
			t.Errorf("Peek elsewhere = %+v, %v, want 1", r, err)
		}
	})
}

// TestLaw5CloseCutShort: when its context ends, loads are cancelled and their
// leases given up: another server loads at once.
func TestLaw5CloseCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		closing, other := newCache[int](t, s, nil), newCache[int](t, s, nil)
		var loads counter
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := closing.Get(t.Context(), "key", loads.after(20*time.Second, nil))
				if !errors.Is(err, cachefill.ErrClosed) {
					t.Errorf("Get: %v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := closing.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("Close: %v, want its context's end and what was cancelled", err)
		}
		wg.Wait()
		start := time.Now()
		v, err := other.Get(t.Context(), "key", loads.after(0, nil))
		if v != 2 || err != nil || time.Since(start) != 0 {
			t.Errorf("Get elsewhere = %v, %v after %v, want 2 at once", v, err, time.Since(start))
		}
	})
}

// TestLaw5CloseWithAHungLoader returns when its context ends, and the lease is
// free.
func TestLaw5CloseWithAHungLoader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		closing, other := newCache[int](t, s, nil), newCache[int](t, s, nil)
		hung := make(chan struct{})
		defer close(hung)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := closing.Get(t.Context(), "key", func(context.Context) (int, error) { <-hung; return 0, nil })
			if !errors.Is(err, cachefill.ErrClosed) {
				t.Errorf("Get: %v, want ErrClosed", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := closing.Close(ctx); err == nil || time.Since(start) > 2*time.Second {
			t.Errorf("Close: %v after %v, want an error soon after its context ended", err, time.Since(start))
		}
		wg.Wait()
		var loads counter
		start = time.Now()
		if v, err := other.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil || time.Since(start) != 0 {
			t.Errorf("Get elsewhere = %v, %v after %v, want 1 at once", v, err, time.Since(start))
		}
	})
}

// TestCloseAnswersWhoWaits: for another server, or for a slot.
func TestCloseAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		holder, c := newCache[int](t, s, nil), newCache(t, s, &cachefill.Options[int]{MaxLoads: 1})
		var loads counter
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = holder.Get(t.Context(), "elsewhere", loads.after(5*time.Second, nil)) })
		wg.Go(func() {
			if _, err := c.Get(t.Context(), "here", loads.after(2*time.Second, nil)); err != nil {
				t.Errorf("Get whose load runs: %v", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		for _, key := range []string{"elsewhere", "in the queue"} {
			wg.Go(func() {
				_, err := c.Get(t.Context(), key, loads.after(0, nil))
				if !errors.Is(err, cachefill.ErrClosed) || time.Since(start) != time.Second {
					t.Errorf("Get(%q): %v after %v, want ErrClosed when Close begins", key, err, time.Since(start))
				}
			})
		}
		time.Sleep(time.Second)
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wg.Wait()
	})
}

func TestClosedRefusesEverything(t *testing.T) {
	for name, o := range map[string]*cachefill.Options[int]{"": nil, "near": {Near: 10}} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, newStore(), o)
			for range 2 { // the second puts it near
				if _, err := c.Get(t.Context(), "key", value(1)); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			ctx := t.Context()
			for name, call := range map[string]func() error{
				"Get":        func() error { _, err := c.Get(ctx, "key", value(2)); return err },
				"Fetch":      func() error { _, err := c.Fetch(ctx, "key", value(2)); return err },
				"Peek":       func() error { _, err := c.Peek(ctx, "key"); return err },
				"Refresh":    func() error { _, err := c.Refresh(ctx, "key", value(2)); return err },
				"Set":        func() error { return c.Set(ctx, "key", 2) },
				"Expire":     func() error { return c.Expire(ctx, "key") },
				"Invalidate": func() error { return c.Invalidate(ctx, "key") },
			} {
				if err := call(); !errors.Is(err, cachefill.ErrClosed) {
					t.Errorf("%s: %v, want ErrClosed", name, err)
				}
			}
		})
	}
}

// TestCloseWhileCalling: a call that passes Close is answered or refused.
func TestCloseWhileCalling(t *testing.T) {
	for range 300 {
		c := newCache(t, newStore(), patient(cachefill.Options[int]{Lease: 3 * time.Millisecond}))
		begin := make(chan struct{})
		var wg sync.WaitGroup
		call := func(f func() error) {
			wg.Go(func() {
				<-begin
				err := f()
				if err != nil && !errors.Is(err, cachefill.ErrClosed) && !errors.Is(err, cachefill.ErrMiss) {
					t.Errorf("got %v, want an answer or ErrClosed", err)
				}
			})
		}
		for range 4 {
			call(func() error { _, err := c.Get(t.Context(), "key", value(1)); return err })
			call(func() error { _, err := c.Peek(t.Context(), "key"); return err })
			call(func() error { return c.Set(t.Context(), "key", 2) })
			call(func() error { return c.Invalidate(t.Context(), "key") })
		}
		call(func() error { return c.Close(t.Context()) })
		close(begin)
		wg.Wait()
	}
}

// TestCloseDuringAPendingInvalidation ends, whether or not the store is back.
func TestCloseDuringAPendingInvalidation(t *testing.T) {
	for name, back := range map[string]bool{"store dead": false, "store back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, faults := newFaulty()
				c, other := newCache[int](t, s, nil), newCache[int](t, s, nil)
				if err := c.Set(t.Context(), "key", 1); err != nil {
					t.Fatal(err)
				}
				faults.set(storetest.Fault{Err: storetest.ErrFault}, "Delete", "DeleteAll")
				if err := c.Invalidate(t.Context(), "key"); !errors.Is(err, cachefill.ErrUnavailable) {
					t.Errorf("Invalidate: %v, want ErrUnavailable", err)
				}
				if back {
					faults.clear()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				if err := c.Close(ctx); err != nil || time.Since(start) > 10*time.Second {
					t.Errorf("Close: %v after %v, want it to end by itself", err, time.Since(start))
				}
				if _, err := other.Peek(t.Context(), "key"); back && !errors.Is(err, cachefill.ErrMiss) {
					t.Errorf("Peek: %v, want ErrMiss: Close made a last attempt", err)
				}
			})
		})
	}
}

// TestCloseLeavesNoGoroutine, after calls of every kind at a real server.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	s := redisStore(t, servertest.Redis(t).Addr)
	use := func() {
		c, err := cachefill.New(s, patient(cachefill.Options[int]{Near: 10, Stale: time.Hour}))
		if err != nil {
			t.Fatal(err)
		}
		var n atomic.Int64
		load := func(context.Context) (int, error) { return int(n.Add(1)), nil }
		for _, key := range []string{"a", "b"} {
			_, _ = c.Get(t.Context(), key, load)
			_, _ = c.Refresh(t.Context(), key, load)
			_ = c.Expire(t.Context(), key)
			_, _ = c.Get(t.Context(), key, load)
		}
		_, _ = c.Get(t.Context(), "failing", func(context.Context) (int, error) { return 0, errors.New("down") })
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = c.Get(ctx, "abandoned", func(context.Context) (int, error) { cancel(); return 1, nil })
		_ = c.Invalidate(t.Context(), "a", "b")
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	use() // what the client keeps running is running now
	before := runtime.NumGoroutine()
	for range 20 {
		use()
	}
	until(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}
