package guard

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

// TestCloseWaitsForLeases: nobody new gets in, waiters are sent away, holders
// finish.
func TestCloseWaitsForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(memstore.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		l := acquired(t, g, "x", nil)
		for range 2 { // a contender, and one in line
			go func() {
				_, err := g.Acquire(t.Context(), "x", nil)
				wantErr(t, err, ErrClosed)
			}()
		}
		time.Sleep(time.Second)
		closed := make(chan error)
		start := time.Now()
		go func() { closed <- g.Close(context.Background()) }()
		time.Sleep(time.Minute)
		_, err = g.Acquire(t.Context(), "y", nil)
		wantErr(t, err, ErrClosed)
		_, err = g.Break(t.Context(), "x")
		wantErr(t, err, ErrClosed)

		again, err := g.Acquire(l.Context(), "x", nil) // the holder may go on
		if err != nil {
			t.Fatalf("re-entry: %v", err)
		}
		released(t, again)
		if l.Err() != nil {
			t.Errorf("the lease ended: %v", l.Err())
		}
		released(t, l)
		if err := <-closed; err != nil || time.Since(start) != time.Minute {
			t.Errorf("closed after %v: %v", time.Since(start), err)
		}
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}

// TestCloseThatEndsEarly: holders are told, their leases are not released but
// run out, since they may be at work still.
func TestCloseThatEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		g, err := New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		stuck, late := acquired(t, g, "x", nil), acquired(t, g, "y", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, g.Close(ctx), context.DeadlineExceeded)
		ends(t, stuck, ErrClosed)
		other := open(t, s, nil)
		for _, name := range []string{"x", "y"} {
			_, err := other.TryAcquire(t.Context(), name, nil)
			wantErr(t, err, ErrHeld)
		}
		wantErr(t, late.Release(t.Context()), ErrClosed)
		synctest.Wait()
		released(t, acquired(t, other, "y", nil))
		time.Sleep(10 * time.Second)
		l, err := other.TryAcquire(t.Context(), "x", nil)
		if err != nil {
			t.Fatalf("the lease was renewed after Close: %v", err)
		}
		released(t, l)
	})
}

// TestCloseEndsWhatIsTriedAgain: what the store does not answer is not tried
// for ever by a guard that is closed.
func TestCloseEndsWhatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		g, err := New(faulty(memstore.New(nil), func(op storetest.Op) storetest.Fault {
			if op.Name != "Release" {
				return storetest.Fault{}
			}
			tries.Add(1)
			return lostRequest
		}), &Options{TTL: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		l := acquired(t, g, "x", nil)
		wantErr(t, l.Release(t.Context()), ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, g.Close(ctx), context.DeadlineExceeded)
		before := tries.Load()
		time.Sleep(time.Minute)
		if n := tries.Load() - before; n > 1 {
			t.Errorf("tried %d times after Close", n)
		}
	})
}

// TestNoGoroutineIsLeft: neither of leases that are held, nor after Close.
// Bubbles, in which most tests run, fail when one is left.
func TestNoGoroutineIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		g := open(t, s, nil)
		for range 100 {
			_ = g.Do(t.Context(), "x", func(context.Context) error { return nil })
		}
		l := acquired(t, g, "x", nil)
		go func() {
			_, err := g.Acquire(t.Context(), "x", &AcquireOptions{Wait: 30 * time.Second})
			wantErr(t, err, ErrHeld)
		}()
		time.Sleep(time.Minute)
		released(t, l)
	})
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	if n := len(renewers.m); n > 0 {
		t.Errorf("%d renewers are left", n)
	}
}

// uncomparable is a store that cannot be a key of a map.
type uncomparable struct {
	store.Leaser
	_ []int
}

func TestStoreThatCannotBeCompared(t *testing.T) {
	g := open(t, uncomparable{Leaser: memstore.New(nil)}, nil)
	released(t, acquired(t, g, "x", nil))
}
