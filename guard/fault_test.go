package guard

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

// once makes an injector that lets fault happen to the first call of a method.
func once(method string, fault storetest.Fault) (storetest.Injector, *atomic.Int64) {
	var calls atomic.Int64
	return func(op storetest.Op) storetest.Fault {
		if op.Name == method && calls.Add(1) == 1 {
			return fault
		}
		return storetest.Fault{}
	}, &calls
}

var (
	lostReply   = storetest.Fault{Applied: true, Err: storetest.ErrFault}
	lostRequest = storetest.Fault{Err: storetest.ErrFault}
)

// TestLaw11LostReplyOfAnAcquire: a lease whose grant was not heard of is asked
// for again by its token; it is neither lost nor granted twice.
func TestLaw11LostReplyOfAnAcquire(t *testing.T) {
	for name, fault := range map[string]storetest.Fault{"reply": lostReply, "request": lostRequest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New(nil)
				inject, calls := once("Acquire", fault)
				g := open(t, faulty(s, inject), nil)
				l, err := g.TryAcquire(t.Context(), "x", nil)
				if err != nil || calls.Load() != 2 {
					t.Fatalf("after %d questions: %v", calls.Load(), err)
				}
				_, err = open(t, s, nil).TryAcquire(t.Context(), "x", nil)
				wantErr(t, err, ErrHeld)
				released(t, l)
				released(t, acquired(t, open(t, s, nil), "x", nil))
			})
		})
	}
}

// TestLaw11LostReplyInTheQueue: the same for a place in the queue, and for the
// wake-up that brings the lease.
func TestLaw11LostReplyInTheQueue(t *testing.T) {
	for _, method := range []string{"Enqueue", "Event"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New(nil)
				inject, _ := once(method, lostReply)
				g := open(t, faulty(s, inject), nil)
				first := acquired(t, open(t, s, nil), "x", nil)
				time.AfterFunc(100*time.Millisecond, func() { released(t, first) })
				start := time.Now()
				l := acquired(t, g, "x", nil)
				if took := time.Since(start); took > time.Second {
					t.Errorf("waited %v", took)
				}
				time.Sleep(time.Minute) // it is renewed, though granted for QueueTTL
				if l.Err() != nil {
					t.Errorf("lost: %v", l.Err())
				}
				released(t, l)
			})
		})
	}
}

// TestLaw11NothingIsLeftOfAGivenUpAcquire: the caller leaves while its request
// is under way. What it might have got is found and given back.
func TestLaw11NothingIsLeftOfAGivenUpAcquire(t *testing.T) {
	late := storetest.Fault{Applied: true, Delay: time.Minute}
	lost := storetest.Fault{Applied: true, Delay: 200 * time.Millisecond, Err: storetest.ErrFault}
	for name := range variants() {
		for kind, fault := range map[string]storetest.Fault{"late": late, "lost": lost} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := variants()[name]
					inject, _ := once("Acquire", fault)
					g := open(t, faulty(s, inject), nil)
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					start := time.Now()
					_, err := g.TryAcquire(ctx, "x", nil)
					wantErr(t, err, context.DeadlineExceeded)
					if took := time.Since(start); took != 100*time.Millisecond {
						t.Errorf("left after %v", took)
					}
					time.Sleep(time.Second) // a tenth of the lease
					l, err := open(t, s, nil).TryAcquire(t.Context(), "x", nil)
					if err != nil {
						t.Fatalf("a lease was left behind: %v", err)
					}
					released(t, l)
				})
			})
		}
	}
}

// TestLaw8LateReplyIsAskedAgain: the lease was over when its grant was heard
// of, so it is asked for again.
func TestLaw8LateReplyIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		inject, calls := once("Acquire", storetest.Fault{Applied: true, Delay: 200 * time.Millisecond})
		g := open(t, faulty(s, inject), nil)
		l := acquired(t, g, "x", &AcquireOptions{TTL: 100 * time.Millisecond})
		if calls.Load() != 2 {
			t.Errorf("asked %d times", calls.Load())
		}
		_, err := open(t, s, nil).TryAcquire(t.Context(), "x", nil)
		wantErr(t, err, ErrHeld)
		released(t, l)
	})
}

// TestLaw8LateTurnIsAskedAgain: a lease out of the queue that is about to end
// when its event is read is asked for instead of being believed.
func TestLaw8LateTurnIsAskedAgain(t *testing.T) {
	c := &contender{enqueued: true, req: store.Request{Token: store.NewToken()}}
	for left, want := range map[time.Duration]bool{store.QueueTTL: true, store.QueueTTL / 8: false, -time.Second: false} {
		e := store.Event{Lease: store.Lease{Token: c.req.Token, Grant: 1, Expires: time.Now().Add(left)}}
		if c.brings(e) != want {
			t.Errorf("a lease that ends in %v is taken: %v", left, !want)
		}
	}
	other := store.Event{Lease: store.Lease{Token: store.NewToken(), Grant: 1, Expires: time.Now().Add(time.Hour)}}
	if c.brings(other) {
		t.Error("the lease of another is taken")
	}
}

// TestLaw11LateGrantIsGivenBack: the driver does not look at contexts, and the
// lease is granted after its caller has left.
func TestLaw11LateGrantIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		answer := make(chan struct{})
		g := open(t, &deaf{Leaser: s, acquire: answer}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := g.Acquire(ctx, "x", nil)
		wantErr(t, err, context.DeadlineExceeded)
		close(answer)
		synctest.Wait()
		l, err := open(t, s, nil).TryAcquire(t.Context(), "x", nil)
		if err != nil {
			t.Fatalf("the lease was left behind: %v", err)
		}
		released(t, l)
	})
}

// TestLaw9ExclusionFailsClosed: a store that does not answer gives an error
// within StoreTimeout, whatever its driver does, and never a lease.
func TestLaw9ExclusionFailsClosed(t *testing.T) {
	refuses := func(storetest.Op) storetest.Fault { return lostRequest }
	hangs := func(storetest.Op) storetest.Fault { return storetest.Fault{Delay: time.Hour} }
	for name, bad := range map[string]func(block chan struct{}) store.Leaser{
		"refuses": func(chan struct{}) store.Leaser { return faulty(memstore.New(nil), refuses) },
		"hangs":   func(chan struct{}) store.Leaser { return faulty(memstore.New(nil), hangs) },
		"ignores contexts": func(block chan struct{}) store.Leaser {
			return &deaf{Leaser: memstore.New(nil), acquire: block, release: block}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block := make(chan struct{})
				g := open(t, bad(block), &Options{StoreTimeout: 300 * time.Millisecond})
				start := time.Now()
				for _, acquire := range []func(context.Context, string, *AcquireOptions) (*Lease, error){g.Acquire, g.TryAcquire} {
					_, err := acquire(t.Context(), "x", nil)
					wantErr(t, err, ErrUnavailable)
					if errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v: no context of the caller ended", err)
					}
				}
				if took := time.Since(start); took > 2*300*time.Millisecond {
					t.Errorf("two calls took %v", took)
				}
				ran := false
				err := g.Do(t.Context(), "x", func(context.Context) error { ran = true; return nil })
				wantErr(t, err, ErrUnavailable)
				if ran {
					t.Error("the function ran without a lease")
				}
				close(block)
			})
		})
	}
}

// TestLaw9WaitingForAHolderIsNotWaitingForTheStore: an outage shorter than
// StoreTimeout does not send waiters away, however long they have waited.
func TestLaw9WaitingForAHolderIsNotWaitingForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		var down atomic.Bool
		g := open(t, faulty(s, func(storetest.Op) storetest.Fault {
			if down.Load() {
				return lostRequest
			}
			return storetest.Fault{}
		}), nil)
		first := acquired(t, open(t, s, nil), "x", nil)
		go func() {
			for range 20 {
				time.Sleep(5 * time.Second)
				down.Store(true)
				time.Sleep(500 * time.Millisecond)
				down.Store(false)
			}
			released(t, first)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		l, err := g.Acquire(ctx, "x", nil)
		if err != nil {
			t.Fatalf("sent away: %v", err)
		}
		released(t, l)
	})
}
