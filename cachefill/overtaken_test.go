package cachefill_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/storetest"
)

// TestLaw3LateCallerWithoutWakeUps: a server that did not hear of the
// invalidation elsewhere runs a load that began before it. Who came after it
// gets nothing of that load.
func TestLaw3LateCallerWithoutWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, f := neighbours(t, nil)
		f.set(dead, "Event")
		var truth atomic.Int64
		truth.Store(1)
		load := func(ctx context.Context) (int, error) {
			v := truth.Load()
			sleep(ctx, 500*time.Millisecond) // before the lease is renewed
			return int(v), nil
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if v, err := a.Get(t.Context(), "key", load); v != 1 || err != nil {
				t.Errorf("Get from before = %v, %v, want its own load's 1", v, err)
			}
		})
		time.Sleep(250 * time.Millisecond)
		truth.Store(2)
		if err := b.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			wg.Go(func() {
				if v, err := a.Get(t.Context(), "key", load); v != 2 || err != nil {
					t.Errorf("Get after Invalidate = %v, %v, want the newer 2", v, err)
				}
			})
		}
		wg.Wait()
	})
}

// puppet is a store whose wake-ups the test makes.
type puppet struct {
	store.Cache
	events chan store.Event
}

func (p *puppet) Watch(context.Context, string) (<-chan store.Event, func(), error) {
	return p.events, func() {}, nil
}

// TestLaw3PushOfAnotherGrantIsNotDelivered: a wake-up was late, and tells of a
// lease before the one that is waited for.
func TestLaw3PushOfAnotherGrantIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		p := &puppet{s, make(chan store.Event, 1)}
		c := newCache[int](t, p, nil)
		if err := c.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		older, err := s.Get(t.Context(), "fill:key")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		a, err := s.Claim(t.Context(), store.Request{Key: "fill:key", Token: store.NewToken(), TTL: 5 * time.Second})
		if err != nil || a.State != store.Granted {
			t.Fatalf("Claim = %v, %v", a.State, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if v, err := c.Get(t.Context(), "key", value(2)); v != 2 || err != nil {
				t.Errorf("Get = %v, %v, want a load of its own once the lease is over", v, err)
			}
		})
		synctest.Wait()
		p.events <- store.Event{Grant: a.Lease.Grant - 1, Entry: older}
		synctest.Wait()
		p.events <- store.Event{Grant: a.Lease.Grant + 1, Entry: older}
		wg.Wait()
	})
}

// TestLaw3NearRefusesWhatWasOvertaken, on its way from a claim or a fill: the
// server that invalidated serves nothing older, near caches included.
func TestLaw3NearRefusesWhatWasOvertaken(t *testing.T) {
	const ms = time.Millisecond
	o := steady(cachefill.Options[int]{Near: 10, NearTTL: time.Hour, TTL: time.Hour, StoreBudget: time.Second})
	for name, test := range map[string]struct {
		faults map[string]storetest.Fault
		set    bool // the other server stores a value between look and claim
	}{
		"claim": {map[string]storetest.Fault{"Watch": {Delay: 20 * ms}, "Claim": slow(50 * ms)}, true},
		"fill":  {map[string]storetest.Fault{"Fill": slow(50 * ms)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, f := neighbours(t, o)
				for name, fault := range test.faults {
					f.next(fault, name)
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					if v, err := a.Get(t.Context(), "key", value(1)); v != 1 || err != nil {
						t.Errorf("Get from before = %v, %v, want 1", v, err)
					}
				})
				time.Sleep(10 * ms)
				if test.set {
					if err := b.Set(t.Context(), "key", 1); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(25 * ms)
				if err := a.Invalidate(t.Context(), "key"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * ms)
				if v, err := a.Get(t.Context(), "key", value(2)); v != 2 || err != nil {
					t.Errorf("Get after Invalidate = %v, %v, want 2", v, err)
				}
				wg.Wait()
			})
		})
	}
}
