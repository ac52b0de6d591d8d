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
	"github.com/herdgate/herdgate/store/storetest"
)

// neighbours are two servers of one store: the replies to the first get lost.
func neighbours(t *testing.T, o *cachefill.Options[int]) (troubled, sound *cachefill.Cache[int], f *faults) {
	t.Helper()
	s := newStore()
	f = new(faults)
	f.clear()
	return newCache(t, storetest.FaultyCache(s, f.inject), o), newCache(t, s, o), f
}

// TestLaw11LostClaimIsWithdrawn: who did not hear that the lease is theirs
// loads without it; the lease is found again by its token and given up, long
// before it would have expired, and nobody has it twice.
func TestLaw11LostClaimIsWithdrawn(t *testing.T) {
	for name, fault := range map[string]storetest.Fault{"error": lost, "silence": slow(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, f := neighbours(t, &cachefill.Options[int]{Lease: time.Minute})
				f.next(fault, "Claim")
				r, err := a.Fetch(t.Context(), "key", value(1))
				if r.Value != 1 || err != nil || r.Outcome != cachefill.Degraded {
					t.Errorf("Fetch = %+v, %v, want an own load", r, err)
				}
				start := time.Now()
				r, err = b.Fetch(t.Context(), "key", value(2))
				if r.Value != 2 || err != nil || r.Outcome != cachefill.Loaded || time.Since(start) > time.Second {
					t.Errorf("Fetch elsewhere = %+v, %v after %v, want a load soon", r, err, time.Since(start))
				}
				time.Sleep(time.Second)
				if r, err := a.Fetch(t.Context(), "key", nothing); r.Value != 2 || err != nil {
					t.Errorf("Fetch at last = %+v, %v, want the other server's 2", r, err)
				}
			})
		})
	}
}

// TestLaw11LateClaimIsGivenUp: the reply arrives after nobody waited for it, or
// the request after it was withdrawn.
func TestLaw11LateClaimIsGivenUp(t *testing.T) {
	for name, before := range map[string]bool{"late reply": false, "late request": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				o := &cachefill.Options[int]{Lease: time.Minute}
				a, b := newCache(t, &late{Cache: s, before: before}, o), newCache(t, s, o)
				if r, err := a.Fetch(t.Context(), "key", value(1)); r.Value != 1 || err != nil || r.Outcome != cachefill.Degraded {
					t.Errorf("Fetch = %+v, %v, want an own load", r, err)
				}
				time.Sleep(2 * time.Second)
				start := time.Now()
				if v, err := b.Get(t.Context(), "key", value(2)); v != 2 || err != nil || time.Since(start) > time.Second {
					t.Errorf("Get elsewhere = %v, %v after %v, want 2 at once", v, err, time.Since(start))
				}
			})
		})
	}
}

// late is a store whose driver ignores contexts, and which takes a second for
// the first claim: before it is done, or after.
type late struct {
	store.Cache
	before bool
	done   atomic.Bool
}

func (l *late) Claim(ctx context.Context, r store.Request) (store.Answer, error) {
	first := !l.done.Swap(true)
	if first && l.before {
		time.Sleep(time.Second)
	}
	a, err := l.Cache.Claim(context.WithoutCancel(ctx), r)
	if first && !l.before {
		time.Sleep(time.Second)
	}
	return a, err
}

// TestLaw11LostFillIsRepeated: the value is there, and stays, and the lease
// has ended once.
func TestLaw11LostFillIsRepeated(t *testing.T) {
	for name, fault := range map[string]storetest.Fault{"reply lost": lost, "request lost": dead} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, f := neighbours(t, nil)
				f.next(fault, "Fill")
				var loads counter
				if v, err := a.Get(t.Context(), "key", loads.after(time.Second, nil)); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
				time.Sleep(time.Second)
				for _, c := range []*cachefill.Cache[int]{a, b} {
					if r, err := c.Fetch(t.Context(), "key", nothing); r.Value != 1 || err != nil || r.Outcome != cachefill.Fresh {
						t.Errorf("Fetch = %+v, %v, want the fresh 1", r, err)
					}
				}
				if got := a.Stats().Lost; got != 0 || loads.n.Load() != 1 {
					t.Errorf("%d leases lost, %d loads, want 0 and 1", got, loads.n.Load())
				}
			})
		})
	}
}

// TestLaw11LostFillDoesNotOutliveAnInvalidation: the repetition finds its lease
// ended.
func TestLaw11LostFillDoesNotOutliveAnInvalidation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, f := neighbours(t, nil)
		f.next(lost, "Fill")
		_, _ = a.Get(t.Context(), "key", value(1))
		if err := b.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		for _, c := range []*cachefill.Cache[int]{a, b} {
			if r, err := c.Peek(t.Context(), "key"); !errors.Is(err, cachefill.ErrMiss) {
				t.Errorf("Peek = %+v, %v, want ErrMiss", r, err)
			}
		}
	})
}

// TestLaw2FailingRenewalsLoseTheLease: the holder notices when its time is
// over, newcomers load anew, and the late value is its own caller's only.
func TestLaw2FailingRenewalsLoseTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log eventLog
		a, b, f := neighbours(t, &cachefill.Options[int]{OnEvent: log.add})
		f.set(dead, "Renew", "RenewAll", "Event")
		var loads counter
		var wg sync.WaitGroup
		start := time.Now()
		wg.Go(func() {
			v, err := a.Get(t.Context(), "key", loads.after(5*time.Second, nil))
			if v != 1 || err != nil || time.Since(start) != 5*time.Second {
				t.Errorf("Get of the holder = %v, %v after %v, want its own 1", v, err, time.Since(start))
			}
		})
		synctest.Wait()
		for _, c := range []*cachefill.Cache[int]{b, a} { // the second may find its breaker open
			wg.Go(func() {
				v, err := c.Get(t.Context(), "key", loads.after(time.Second, nil))
				if v < 2 || err != nil || time.Since(start) > 4*time.Second {
					t.Errorf("Get after the lease was over = %v, %v after %v, want another load's value", v, err, time.Since(start))
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if e := log.of(cachefill.LeaseLost); len(e) != 1 || e[0].Key != "key" {
			t.Errorf("events %+v, want one LeaseLost", e)
		}
		if r, err := b.Peek(t.Context(), "key"); r.Value < 2 || err != nil {
			t.Errorf("Peek = %+v, %v, want what the other server loaded: the late fill is refused", r, err)
		}
	})
}

// TestOneFailedRenewalLosesNothing.
func TestOneFailedRenewalLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, f := neighbours(t, nil)
		var loads counter
		var wg sync.WaitGroup
		for _, c := range []*cachefill.Cache[int]{a, b} {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", loads.after(7*time.Second, nil)); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
			})
			synctest.Wait()
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			f.next(lost, "Renew", "RenewAll")
		}
		wg.Wait()
		if got := a.Stats().Lost; got != 0 {
			t.Errorf("%d leases lost, want none", got)
		}
	})
}

// TestLaw5FailingYieldIsRepeated: other servers hear of the failure soon, not
// when the lease is over.
func TestLaw5FailingYieldIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, f := neighbours(t, &cachefill.Options[int]{Lease: 20 * time.Second, Wait: time.Minute})
		f.next(dead, "Yield")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = a.Get(t.Context(), "key", func(context.Context) (int, error) { time.Sleep(time.Second); return 0, errors.New("down") })
		})
		synctest.Wait()
		start := time.Now()
		_, err := b.Get(t.Context(), "key", nothing)
		if !errors.Is(err, cachefill.ErrLoadFailed) || time.Since(start) > 3*time.Second {
			t.Errorf("Get elsewhere: %v after %v, want the failure soon", err, time.Since(start))
		}
		wg.Wait()
	})
}

// TestWithoutWakeUpsItPolls: a subscription that fails, and wake-ups that get
// lost, cost time only.
func TestWithoutWakeUpsItPolls(t *testing.T) {
	for name, op := range map[string]string{"no subscription": "Watch", "lost wake-ups": "Event"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, f := neighbours(t, nil)
				f.set(dead, op)
				var loads counter
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = b.Get(t.Context(), "key", loads.after(3*time.Second, nil)) })
				synctest.Wait()
				start := time.Now()
				v, err := a.Get(t.Context(), "key", loads.after(0, nil))
				if v != 1 || err != nil || time.Since(start) > 4*time.Second {
					t.Errorf("Get = %v, %v after %v, want 1 within a poll of the load's end", v, err, time.Since(start))
				}
				wg.Wait()
			})
		})
	}
}

// TestLaw9SlowStore: just within the budget everything works; beyond it, a call
// waits for one budget, whatever it asks the store.
func TestLaw9SlowStore(t *testing.T) {
	all := []string{"Get", "Claim", "Renew", "RenewAll", "Fill", "Yield", "Watch", "Delete", "DeleteAll", "Put", "Expire"}
	const budget = 300 * time.Millisecond
	for delay, want := range map[time.Duration]cachefill.Outcome{
		90 * time.Millisecond:     cachefill.Loaded,
		budget - time.Millisecond: cachefill.Degraded, // its look takes all
		budget + time.Millisecond: cachefill.Degraded,
		3 * time.Second:           cachefill.Degraded,
	} {
		synctest.Test(t, func(t *testing.T) {
			s, f := newFaulty()
			c := newCache(t, s, &cachefill.Options[int]{StoreBudget: budget})
			f.set(slow(delay), all...)
			start := time.Now()
			r, err := c.Fetch(t.Context(), "key", func(ctx context.Context) (int, error) { sleep(ctx, time.Second); return 1, nil })
			if r.Value != 1 || err != nil || r.Outcome != want || time.Since(start) > time.Second+budget+10*time.Millisecond {
				t.Errorf("replies after %v: %+v, %v after %v, want %v", delay, r, err, time.Since(start), want)
			}
			for name, call := range map[string]func() error{
				"Invalidate": func() error { return c.Invalidate(t.Context(), "other") },
				"Set":        func() error { return c.Set(t.Context(), "other", 1) },
				"Expire":     func() error { return c.Expire(t.Context(), "other") },
				"Peek":       func() error { _, err := c.Peek(t.Context(), "other"); return err },
			} {
				start := time.Now()
				if err := call(); (delay > budget) != errors.Is(err, cachefill.ErrUnavailable) || time.Since(start) > budget {
					t.Errorf("replies after %v: %s: %v after %v", delay, name, err, time.Since(start))
				}
			}
		})
	}
}

// TestLaw9BudgetIsPerCall: who has waited for a fill that is not answered does
// not wait for another look.
func TestLaw9BudgetIsPerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFaulty()
		c := newCache[int](t, s, nil)
		var loads counter
		var wg sync.WaitGroup
		for range 2 {
			start := time.Now()
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "key", loads.after(time.Second, nil)); err != nil {
					t.Errorf("Get: %v", err)
				}
				if took := time.Since(start); took > 2*time.Second+150*time.Millisecond {
					t.Errorf("took %v, want two loads and one budget of 100ms", took)
				}
			})
			synctest.Wait() // the second comes after the claim
		}
		f.set(slow(time.Hour), "Fill", "Get", "Claim", "Watch", "Yield", "Renew")
		wg.Wait()
		if got := loads.n.Load(); got != 2 {
			t.Errorf("%d loads, want 2", got)
		}
	})
}
