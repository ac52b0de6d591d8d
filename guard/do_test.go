package guard

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store/memstore"
)

func TestDoRunsUnderTheLease(t *testing.T) {
	g := open(t, memstore.New(nil), &Options{Fence: true})
	failed := errors.New("failed")
	err := g.Do(t.Context(), "x", func(ctx context.Context) error {
		if l, ok := FromContext(ctx); !ok || l.Name() != "x" || l.Fence() == 0 {
			t.Errorf("the lease in the context is %+v", l)
		}
		_, err := g.TryAcquire(t.Context(), "x", nil)
		wantErr(t, err, ErrHeld)
		return failed
	})
	if err != failed {
		t.Errorf("Do returned %v", err)
	}
	released(t, acquired(t, g, "x", nil))
}

// TestLaw5PanicAndGoexitReleaseTheLease: whatever ends fn ends the lease and
// goes on to the caller.
func TestLaw5PanicAndGoexitReleaseTheLease(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = g.Do(t.Context(), "x", func(context.Context) error { panic("boom") })
	}()
	l, err := g.TryAcquire(t.Context(), "x", nil)
	if err != nil {
		t.Fatalf("after a panic: %v", err)
	}
	released(t, l)

	done := make(chan bool)
	go func() {
		returned := false
		defer func() { done <- returned }()
		_ = g.Do(t.Context(), "x", func(context.Context) error { runtime.Goexit(); return nil })
		returned = true
	}()
	if <-done {
		t.Error("Do returned although its function ended the goroutine")
	}
	if l, err = g.TryAcquire(t.Context(), "x", nil); err != nil {
		t.Fatalf("after Goexit: %v", err)
	}
	released(t, l)
}

func TestDoEndsWithItsCaller(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := g.Do(ctx, "x", func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	wantErr(t, err, context.Canceled)
	if errors.Is(err, ErrLost) {
		t.Errorf("the lease was not lost: %v", err)
	}
	released(t, acquired(t, g, "x", nil))
}

func TestDoTellsThatTheLeaseWasLost(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		err := g.Do(t.Context(), "x", func(ctx context.Context) error {
			if _, err := g.Break(ctx, "x"); err != nil {
				t.Errorf("Break: %v", err)
			}
			return want // at once: that it was broken shows at the release
		})
		wantErr(t, err, ErrLost)
		if want != nil {
			wantErr(t, err, want)
		}
	}
}

// TestMaxHoldEndsTheLease: the context ends at MaxHold, while the lease still
// excludes others; then it runs out.
func TestMaxHoldEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		g := open(t, s, &Options{MaxHold: time.Minute})
		other := open(t, s, nil)
		start := time.Now()
		err := g.Do(t.Context(), "x", func(ctx context.Context) error {
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), ErrMaxHold)
			if held := time.Since(start); held != time.Minute {
				t.Errorf("held for %v", held)
			}
			_, err := other.TryAcquire(t.Context(), "x", nil)
			wantErr(t, err, ErrHeld)
			return nil
		})
		wantErr(t, err, ErrMaxHold)
		wantErr(t, err, ErrLost)

		// Without a release the lease runs out: it is renewed no longer.
		l := acquired(t, g, "x", nil)
		time.Sleep(time.Minute)
		ends(t, l, ErrMaxHold)
		next := acquired(t, other, "x", nil)
		if waited := time.Since(start); waited > 2*time.Minute+11*time.Second {
			t.Errorf("the next holder had to wait until %v", waited)
		}
		released(t, next)

		unlimited := acquired(t, g, "x", &AcquireOptions{MaxHold: -1})
		time.Sleep(2 * time.Minute)
		if err := unlimited.Err(); err != nil {
			t.Errorf("a lease without limit ended: %v", err)
		}
		released(t, unlimited)
	})
}
