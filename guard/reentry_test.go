package guard

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/internal/scope"
	"github.com/herdgate/herdgate/store/memstore"
)

// TestReentryIsCounted: the same lease, with the same fence, which ends with
// the last release.
func TestReentryIsCounted(t *testing.T) {
	g := open(t, memstore.New(nil), &Options{Fence: true})
	l := acquired(t, g, "x", nil)
	again, err := g.TryAcquire(l.Context(), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	third, err := g.Acquire(again.Context(), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Fence() != l.Fence() || third.Fence() != l.Fence() {
		t.Errorf("fences %d, %d, %d", l.Fence(), again.Fence(), third.Fence())
	}
	released(t, l)
	released(t, l) // counts once
	ends(t, l, ErrReleased)
	if third.Err() != nil || again.Err() != nil {
		t.Errorf("ended with the first: %v, %v", again.Err(), third.Err())
	}
	released(t, third)
	_, err = g.TryAcquire(t.Context(), "x", nil)
	wantErr(t, err, ErrHeld)
	released(t, again)
	released(t, acquired(t, g, "x", nil))
}

func TestReentryIsByNameAndGuard(t *testing.T) {
	s := memstore.New(nil)
	g, other := open(t, s, nil), open(t, s, nil)
	l := acquired(t, g, "x", nil)
	_, err := other.TryAcquire(l.Context(), "x", nil)
	wantErr(t, err, ErrHeld)
	inner, err := g.Acquire(l.Context(), "y", nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := g.Acquire(inner.Context(), "x", nil) // through another lease
	if err != nil {
		t.Fatal(err)
	}
	released(t, again)
	released(t, inner)
	released(t, l)

	// A lease that was released is none: it is acquired anew.
	l, err = g.Acquire(context.WithoutCancel(l.Context()), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.TryAcquire(t.Context(), "x", nil)
	wantErr(t, err, ErrHeld)
	released(t, l)
}

// TestLostLeaseIsNotReentered: who goes on would believe to be protected.
func TestLostLeaseIsNotReentered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, memstore.New(nil), nil)
		l := acquired(t, g, "x", nil)
		again, err := g.Acquire(l.Context(), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Break(t.Context(), "x"); err != nil {
			t.Errorf("Break: %v", err)
		}
		ends(t, l, ErrLost)
		ends(t, again, ErrLost)
		_, err = g.Acquire(context.WithoutCancel(l.Context()), "x", nil)
		wantErr(t, err, ErrLost)
		wantErr(t, l.Release(t.Context()), ErrLost)
		wantErr(t, again.Release(t.Context()), ErrLost)
	})
}

func TestDoInsideDo(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	type key struct{}
	err := g.Do(t.Context(), "x", func(ctx context.Context) error {
		ctx = context.WithValue(ctx, key{}, "inner")
		return g.Do(ctx, "x", func(ctx context.Context) error {
			if ctx.Value(key{}) != "inner" {
				t.Error("the inner context lost its values")
			}
			return ctx.Err()
		})
	})
	if err != nil {
		t.Errorf("Do: %v", err)
	}
}

// unit is a unit of work.
type unit struct {
	leases map[any]scope.Lease
	over   bool
}

func (u *unit) Find(key any) (scope.Lease, bool) { l, ok := u.leases[key]; return l, ok }

func (u *unit) Adopt(key any, l scope.Lease) bool {
	if !u.over {
		u.leases[key] = l
	}
	return !u.over
}

// TestLaw10ScopeEndsItsLeases: Release does nothing in a scope, acquiring again
// gives the same lease, the end of the scope ends it.
func TestLaw10ScopeEndsItsLeases(t *testing.T) {
	g := open(t, memstore.New(nil), &Options{Fence: true})
	u := &unit{leases: make(map[any]scope.Lease)}
	ctx := scope.With(t.Context(), u)
	first, err := g.Acquire(ctx, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := g.TryAcquire(ctx, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Do(ctx, "x", func(context.Context) error { return nil }); err != nil {
		t.Errorf("Do: %v", err)
	}
	released(t, first)
	released(t, second)
	if first.Err() != nil || second.Err() != nil || first.Fence() != second.Fence() || len(u.leases) != 1 {
		t.Errorf("%v, %v, fences %d and %d, %d leases", first.Err(), second.Err(), first.Fence(), second.Fence(), len(u.leases))
	}
	_, err = g.TryAcquire(scope.Without(ctx), "x", nil)
	wantErr(t, err, ErrHeld)

	for _, l := range u.leases {
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("the scope's release: %v", err)
		}
	}
	ends(t, first, ErrReleased)
	ends(t, second, ErrReleased)
	u.over = true
	l, err := g.Acquire(scope.With(t.Context(), &unit{over: true}), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	released(t, l) // nobody else does
	released(t, acquired(t, g, "x", nil))
}

// TestLaw10LeasesLapseWhenTheOutcomeIsUnknown: no release, and no renewal.
func TestLaw10LeasesLapseWhenTheOutcomeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		g := open(t, s, nil)
		u := &unit{leases: make(map[any]scope.Lease)}
		l, err := g.Acquire(scope.With(t.Context(), u), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range u.leases {
			l.Lapse()
		}
		ends(t, l, ErrLost)
		start := time.Now()
		next := acquired(t, open(t, s, nil), "x", nil)
		if took := time.Since(start); took < 9*time.Second {
			t.Errorf("released after %v", took)
		}
		released(t, next)
	})
}

// TestScopeWaitsForItself: two goroutines of one scope ask for the same name.
// The second finds the first's lease when its turn comes.
func TestScopeWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		holder := acquired(t, open(t, s, nil), "x", nil)
		g := open(t, s, nil)
		u := &unit{leases: make(map[any]scope.Lease)}
		ctx := scope.With(t.Context(), u)
		done := make(chan error)
		for range 2 {
			go func() { _, err := g.Acquire(ctx, "x", nil); done <- err }()
			synctest.Wait()
		}
		released(t, holder)
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Acquire: %v", err)
			}
		}
		for _, l := range u.leases {
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("the scope's release: %v", err)
			}
		}
	})
}
