package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
)

// pass lets every call pass.
func pass(Op) Fault { return Fault{} }

// only lets fault happen to calls of one name.
func only(name string, fault Fault) Injector {
	return func(op Op) Fault {
		if op.Name == name {
			return fault
		}
		return Fault{}
	}
}

// TestFaultyStoresConform: without faults the wrappers keep every promise and
// every capability.
func TestFaultyStoresConform(t *testing.T) {
	b := memory()
	b.Facts.Local = false // it is like a server behind a network
	b.Cache = func(testing.TB) store.Cache { return FaultyCache(small(), pass) }
	b.Leaser = func(testing.TB) store.Leaser { return FaultyLeaser(small(), pass) }
	Test(t, b)
}

// TestFaultyHidesNothingAndAddsNothing compares the capabilities of a poor
// store with those of its wrapper.
func TestFaultyHidesNothingAndAddsNothing(t *testing.T) {
	s := small()
	c := FaultyCache(hides{s, s}, pass)
	_, watcher := store.As[store.Watcher](c)
	_, queuer := store.As[store.Queuer](c)
	_, putter := store.As[store.Putter](c)
	_, clock := store.As[store.Clock](c)
	_, leaser := store.As[store.Leaser](c)
	if watcher || queuer || putter || clock || !leaser || store.FactsOf(c) != (store.Facts{}) {
		t.Errorf("watcher %t, queuer %t, putter %t, clock %t, leaser %t", watcher, queuer, putter, clock, leaser)
	}
}

// TestFaultMeetsEveryCall fails each method in turn, found as users find it.
func TestFaultMeetsEveryCall(t *testing.T) {
	var (
		ctx = t.Context()
		req = request("key", long)
		l   = store.Lease{Key: "key", Token: req.Token, Grant: 1}
	)
	calls := map[string]func(c store.Cache) error{
		"Get":    func(c store.Cache) error { _, err := c.Get(ctx, "key"); return err },
		"Claim":  func(c store.Cache) error { _, err := c.Claim(ctx, req); return err },
		"Renew":  func(c store.Cache) error { _, err := c.Renew(ctx, l, long); return err },
		"Fill":   func(c store.Cache) error { return c.Fill(ctx, l, nil, long) },
		"Yield":  func(c store.Cache) error { return c.Yield(ctx, l, store.Failure{}) },
		"Delete": func(c store.Cache) error { return c.Delete(ctx, "key") },
		"Put":    func(c store.Cache) error { return store.Put(ctx, c, "key", req.Token, nil, long) },
		"Expire": func(c store.Cache) error { return store.Expire(ctx, c, "key") },
		"DeleteAll": func(c store.Cache) error {
			return errors.Join(store.DeleteAll(ctx, c, []string{"key", "other"})...)
		},
		"GetAll": func(c store.Cache) error {
			_, errs := found[store.BatchGetter](c).GetAll(ctx, []string{"key", "other"})
			return errors.Join(errs...)
		},
		"RenewAll": func(c store.Cache) error {
			_, errs := store.RenewAll(ctx, c, []store.Lease{l, l}, long)
			return errors.Join(errs...)
		},
		"Watch": func(c store.Cache) error { _, _, err := found[store.Watcher](c).Watch(ctx, "key"); return err },
		"Announce": func(c store.Cache) error {
			_, err := found[store.Announcer](c).Announce(ctx, func(store.Change) {})
			return err
		},
		"Acquire": func(c store.Cache) error { _, err := found[store.Leaser](c).Acquire(ctx, req); return err },
		"Release": func(c store.Cache) error { return found[store.Leaser](c).Release(ctx, l) },
		"Enqueue": func(c store.Cache) error { _, err := found[store.Queuer](c).Enqueue(ctx, req); return err },
		"Leave":   func(c store.Cache) error { return found[store.Queuer](c).Leave(ctx, req) },
		"Break":   func(c store.Cache) error { _, err := found[store.Breaker](c).Break(ctx, "key"); return err },
	}
	for name, call := range calls {
		if err := call(FaultyCache(small(), only(name, Fault{Err: ErrFault}))); !errors.Is(err, ErrFault) {
			t.Errorf("%s with a fault returned %v", name, err)
		}
		if err := call(FaultyCache(small(), pass)); errors.Is(err, ErrFault) {
			t.Errorf("%s without a fault returned %v", name, err)
		}
	}
}

func found[T any](s any) T {
	t, _ := store.As[T](s)
	return t
}

// TestFaultBeforeAndAfter: a fault happens to the request, or to the reply of
// what was done.
func TestFaultBeforeAndAfter(t *testing.T) {
	for _, applied := range []bool{false, true} {
		s := small()
		c := FaultyCache(s, only("Claim", Fault{Applied: applied, Err: ErrFault}))
		req := request("key", long)
		if _, err := c.Claim(t.Context(), req); !errors.Is(err, ErrFault) {
			t.Fatalf("got error %v", err)
		}
		held, err := s.Break(t.Context(), "key")
		if err != nil || (held.Grant != 0) != applied {
			t.Errorf("applied %t: the store has the lease %+v, error %v", applied, held, err)
		}
	}
}

func TestFaultWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := FaultyCache(small(), only("Delete", Fault{Delay: time.Second, Block: release}))
		start := time.Now()
		time.AfterFunc(3*time.Second, func() { close(release) })
		if err := c.Delete(t.Context(), "key"); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("got error %v after %v", err, time.Since(start))
		}
		start = time.Now()
		if err := c.Delete(t.Context(), "key"); err != nil || time.Since(start) != time.Second {
			t.Errorf("got error %v after %v", err, time.Since(start))
		}
	})
}

// TestFaultEndsWithTheContext: a call does not outlast its context, neither
// while it waits nor when the context had ended before.
func TestFaultEndsWithTheContext(t *testing.T) {
	for _, fault := range []Fault{
		{Delay: time.Hour}, {Block: make(chan struct{})}, {Applied: true, Delay: time.Hour}, {},
	} {
		c := FaultyCache(small(), only("Delete", fault))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Delete(ctx, "key"); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: got error %v", fault, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := FaultyCache(small(), only("Delete", Fault{Block: make(chan struct{})}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Delete(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
	})
}

// TestFaultyEvents: a wake-up can be lost or late.
func TestFaultyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // protects fault and ops
		var fault Fault
		var ops []Op
		c := FaultyCache(small(), func(op Op) Fault {
			mu.Lock()
			defer mu.Unlock()
			ops = append(ops, op)
			if op.Name == "Event" {
				return fault
			}
			return Fault{}
		})
		events, stop := store.Watch(t.Context(), c, "key")
		wake := func(f Fault) {
			mu.Lock()
			fault = f
			mu.Unlock()
			if err := c.Delete(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		wake(Fault{})
		if len(events) != 1 {
			t.Error("an event did not arrive")
		}
		<-events
		wake(Fault{Err: ErrFault})
		if len(events) != 0 {
			t.Error("a lost event arrived")
		}
		wake(Fault{Delay: time.Second})
		if len(events) != 0 {
			t.Error("a late event arrived at once")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		wake(Fault{})
		if len(events) != 1 {
			t.Error("a late event did not arrive, or not only the newest was kept")
		}
		stop() // else the bubble's end finds the goroutine that forwards
		if !slices.ContainsFunc(ops, func(op Op) bool { return op.Name == "Event" && op.Key == "key" }) {
			t.Errorf("the injector was asked about %v", ops)
		}
	})
}

// TestFaultyAnnouncements: an announcement can be late; a lost one says in the
// end that all is in doubt.
func TestFaultyAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault Fault
		c := FaultyCache(small(), func(op Op) Fault {
			if op.Name == "Change" {
				return fault
			}
			return Fault{}
		})
		heard := make(chan store.Change, 10)
		stop, err := found[store.Announcer](c).Announce(t.Context(), func(c store.Change) { heard <- c })
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			fault Fault
			want  store.Change
		}{
			{Fault{}, store.Change{Key: "key"}},
			{Fault{Err: ErrFault}, store.Change{All: true}},
			{Fault{Delay: time.Second}, store.Change{Key: "key"}},
			{Fault{Delay: time.Second, Err: ErrFault}, store.Change{All: true}},
		} {
			fault = step.fault
			start := time.Now()
			if err := c.Delete(t.Context(), "key"); err != nil || time.Since(start) > 0 {
				t.Fatalf("Delete: %v after %v", err, time.Since(start))
			}
			if got := <-heard; got != step.want || time.Since(start) != step.fault.Delay {
				t.Errorf("%+v: heard %+v after %v", step.fault, got, time.Since(start))
			}
		}
		fault = Fault{Delay: time.Second}
		if err := c.Delete(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		stop()
		synctest.Wait()
		if len(heard) > 0 {
			t.Errorf("heard %+v after stop", <-heard)
		}
	})
}

// TestLostBatchTellsEachKey: a batch answers for each of its keys, also when
// the reply is lost.
func TestLostBatchTellsEachKey(t *testing.T) {
	s := small()
	var keys []string
	c := FaultyCache(s, func(op Op) Fault {
		if op.Name != "RenewAll" {
			return Fault{}
		}
		keys = op.Keys
		return Fault{Applied: true, Err: ErrFault}
	})
	a, err := c.Claim(t.Context(), request("a", time.Second))
	if err != nil {
		t.Fatal(err)
	}
	none := store.Lease{Key: "b", Token: store.NewToken(), Grant: 1}
	renewed, errs := store.RenewAll(t.Context(), c, []store.Lease{a.Lease, none}, long)
	if len(renewed) != 2 || len(errs) != 2 || !errors.Is(errs[0], ErrFault) || renewed[0].Grant != 0 {
		t.Errorf("got %v and %v", renewed, errs)
	}
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("the injector was told the keys %v", keys)
	}
}
