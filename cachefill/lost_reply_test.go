package cachefill_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
)

// forgetful is a store whose next calls of a kind do nothing and fail.
type forgetful struct {
	store.Cache
	fills, yields int
}

var errForgot = errors.New("store: not now")

func (f *forgetful) Fill(ctx context.Context, l store.Lease, v []byte, ttl time.Duration) error {
	if f.fills > 0 {
		f.fills--
		return errForgot
	}
	return f.Cache.Fill(ctx, l, v, ttl)
}

func (f *forgetful) Yield(ctx context.Context, l store.Lease, sf store.Failure) error {
	if f.yields > 0 {
		f.yields--
		return errForgot
	}
	return f.Cache.Yield(ctx, l, sf)
}

// A load can take many times the lease, which is renewed meanwhile: what could
// not be told at its end is still repeated.
func TestLaw11EndOfALongLoadIsToldInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Cache: newStore(), fills: 2}
		c := newCache(t, s, &cachefill.Options[int]{Wait: time.Minute})
		var loads counter
		if _, err := c.Get(t.Context(), "filled", loads.after(20*time.Second, nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if r, err := c.Peek(t.Context(), "filled"); err != nil || r.Value != 1 {
			t.Errorf("Peek = %+v, %v, want the loaded 1: the fill is repeated", r, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Cache: newStore(), yields: 2}
		a, b := newCache(t, s, &cachefill.Options[int]{CoolDown: time.Minute, Wait: time.Minute}), newCache[int](t, s, nil)
		errDown := errors.New("down")
		var loads counter
		_, err := a.Get(t.Context(), "failed", loads.after(20*time.Second, errDown))
		if !errors.Is(err, errDown) {
			t.Errorf("Get: %v, want the loader's error", err)
		}
		start := time.Now()
		_, err = b.Get(t.Context(), "failed", loads.after(0, nil))
		if !errors.Is(err, cachefill.ErrLoadFailed) || time.Since(start) > time.Second {
			t.Errorf("Get elsewhere: %v after %v, want the shared failure before the lease ends", err, time.Since(start))
		}
	})
}
