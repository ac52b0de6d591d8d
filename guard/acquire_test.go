package guard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

// variants are ways in which a store can let callers wait.
func variants() map[string]store.Leaser {
	return map[string]store.Leaser{
		"local": &placed{memstore.New(nil), true},
		"queue": &placed{memstore.New(nil), false},
		"watch": &watchedOnly{leaserOnly{memstore.New(nil)}},
		"poll":  &leaserOnly{memstore.New(nil)},
	}
}

// watchedOnly has wake-ups and no queue.
type watchedOnly struct{ leaserOnly }

func (w *watchedOnly) Watch(ctx context.Context, key string) (<-chan store.Event, func(), error) {
	return w.Leaser.(store.Watcher).Watch(ctx, key)
}

// TestLaw1OneHolder: callers of several guards count up an unprotected number.
func TestLaw1OneHolder(t *testing.T) {
	for name, s := range variants() {
		t.Run(name, func(t *testing.T) {
			guards := []*Guard{open(t, s, nil), open(t, s, nil), open(t, s, nil)}
			const callers, rounds = 16, 50
			count, inside := 0, 0
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for range rounds {
						err := guards[i%len(guards)].Do(t.Context(), "x", func(context.Context) error {
							if inside++; inside != 1 {
								t.Errorf("%d holders at once", inside)
							}
							count++
							inside--
							return nil
						})
						if err != nil {
							t.Errorf("Do: %v", err)
						}
					}
				})
			}
			wg.Wait()
			if count != callers*rounds {
				t.Errorf("counted %d of %d", count, callers*rounds)
			}
		})
	}
}

// TestFirstComeFirstServed: callers of one process get the lease in the order
// in which they came.
func TestFirstComeFirstServed(t *testing.T) {
	for name := range variants() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, variants()[name], nil)
				first := acquired(t, g, "x", nil)
				var order []int
				var wg sync.WaitGroup
				for i := range 10 {
					wg.Go(func() {
						l, err := g.Acquire(t.Context(), "x", nil)
						if err != nil {
							t.Errorf("Acquire: %v", err)
							return
						}
						order = append(order, i)
						released(t, l)
					})
					synctest.Wait()
				}
				released(t, first)
				wg.Wait()
				for i, got := range order {
					if got != i {
						t.Fatalf("served in the order %v", order)
					}
				}
			})
		})
	}
}

// TestOneContenderPerProcess: however many wait, one of them asks the store.
func TestOneContenderPerProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, watches atomic.Int64
		s := faulty(memstore.New(nil), func(op storetest.Op) storetest.Fault {
			switch op.Name {
			case "Acquire", "Enqueue":
				asked.Add(1)
			case "Watch":
				watches.Add(1)
			}
			return storetest.Fault{}
		})
		g := open(t, s, nil)
		l := acquired(t, g, "x", nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := g.Acquire(ctx, "x", nil)
				wantErr(t, err, context.Canceled)
				wantErr(t, err, ErrHeld)
			})
		}
		time.Sleep(10 * time.Second)
		// The holder's own, the first refusal, and one per half a QueueTTL,
		// up to a quarter earlier.
		if n := asked.Load(); n > 2+10*3 {
			t.Errorf("the store was asked %d times in 10 s", n)
		}
		if n := watches.Load(); n != 2 {
			t.Errorf("%d watches, of a holder and a contender", n)
		}
		cancel()
		wg.Wait()
		released(t, l)
	})
}

// TestTurnCostsTwoCommands: with others waiting before it, a caller asks once
// for a place in the queue and is brought the lease by the wake-up.
func TestTurnCostsTwoCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var commands atomic.Int64
		s := faulty(memstore.New(nil), func(op storetest.Op) storetest.Fault {
			if op.Name != "Watch" && op.Name != "Event" {
				commands.Add(1)
			}
			return storetest.Fault{}
		})
		guards := []*Guard{open(t, s, nil), open(t, s, nil)}
		const callers, rounds = 4, 100
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range rounds {
					err := guards[i%2].Do(t.Context(), "x", func(context.Context) error {
						time.Sleep(time.Millisecond)
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if perTurn := float64(commands.Load()) / (callers * rounds); perTurn > 2.1 {
			t.Errorf("%.2f commands per turn", perTurn)
		}
	})
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		l := acquired(t, open(t, s, &Options{Owner: "other"}), "x", nil)
		g := open(t, s, &Options{Wait: 3 * time.Second})
		var wg sync.WaitGroup
		for range 2 { // a contender, and one in line
			wg.Go(func() {
				start := time.Now()
				_, err := g.Acquire(t.Context(), "x", nil)
				var held *HeldError
				if !errors.As(err, &held) || held.Holder.Note.Owner != "other" {
					t.Errorf("the error %v does not say who", err)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v: no context ended", err)
				}
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("waited %v", took)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := g.Acquire(ctx, "x", &AcquireOptions{Wait: -1})
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != time.Minute {
			t.Errorf("waited %v without a bound", took)
		}
		released(t, l)
	})
}

func TestEndedContextIsNotAsked(t *testing.T) {
	var asked atomic.Int64
	g, err := New(faulty(memstore.New(nil), func(storetest.Op) storetest.Fault {
		asked.Add(1)
		return storetest.Fault{}
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for range 20 {
		_, err := g.Acquire(ctx, "x", nil)
		wantErr(t, err, context.Canceled)
		wantErr(t, err, why)
		_, err = g.TryAcquire(ctx, "x", nil)
		wantErr(t, err, context.Canceled)
	}
	if err := g.Close(t.Context()); err != nil || asked.Load() > 0 {
		t.Errorf("the store was asked %d times; Close: %v", asked.Load(), err)
	}
}

// TestDeadHolderIsFollowed: a lease that nobody renews goes to who waits when
// its time is over, in every way of waiting.
func TestDeadHolderIsFollowed(t *testing.T) {
	for name := range variants() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := variants()[name]
				dead := store.Request{Key: "guard:x", Token: store.NewToken(), TTL: 10 * time.Second}
				if _, err := s.Acquire(t.Context(), dead); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				l := acquired(t, open(t, s, nil), "x", nil)
				if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
					t.Errorf("followed after %v", took)
				}
				released(t, l)
			})
		})
	}
}

// TestPollsAreSpacedByWhatTheHolderExpects: a store without wake-ups is asked
// seldom while the holder says that it takes long.
func TestPollsAreSpacedByWhatTheHolderExpects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := func(expect time.Duration) int64 {
			var asked atomic.Int64
			s := faulty(&leaserOnly{memstore.New(nil)}, func(op storetest.Op) storetest.Fault {
				if op.Name == "Acquire" {
					asked.Add(1)
				}
				return storetest.Fault{}
			})
			l := acquired(t, open(t, s, nil), "x", &AcquireOptions{Expect: expect})
			_, err := open(t, s, nil).Acquire(t.Context(), "x", &AcquireOptions{Wait: 10 * time.Second})
			wantErr(t, err, ErrHeld)
			released(t, l)
			return asked.Load()
		}
		if unknown, long := polls(0), polls(time.Minute); unknown > 160 || long > 40 {
			t.Errorf("asked %d times in 10 s, and %d times for a holder that takes long", unknown, long)
		}
	})
}
