package cachefill_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

// mostLoads asks for a hundred keys at once and returns how many loads ran
// side by side at most.
func mostLoads(t *testing.T, c *cachefill.Cache[int]) (most int64) {
	var running, peak atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			_, err := c.Get(t.Context(), fmt.Sprint("key", i), func(ctx context.Context) (int, error) {
				now := running.Add(1)
				defer running.Add(-1)
				for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
				}
				sleep(ctx, 10*time.Millisecond)
				return 1, nil
			})
			if err != nil {
				t.Errorf("Get: %v", err)
			}
		})
	}
	wg.Wait()
	return peak.Load()
}

func TestMaxLoadsIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if most := mostLoads(t, newCache(t, newStore(), &cachefill.Options[int]{MaxLoads: 3})); most != 3 {
			t.Errorf("%d loads at once, want 3", most)
		}
	})
}

// TestLaw14SaturatedServerSitsOnNoLease: who queues for a slot has no lease.
func TestLaw14SaturatedServerSitsOnNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		busy, idle := newCache(t, s, &cachefill.Options[int]{MaxLoads: 1}), newCache[int](t, s, nil)
		var loads counter
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = busy.Get(t.Context(), "other", loads.after(5*time.Second, nil)) })
		synctest.Wait()
		wg.Go(func() {
			start := time.Now()
			v, err := busy.Get(t.Context(), "key", loads.after(time.Second, nil))
			if v != 2 || err != nil || time.Since(start) != 5*time.Second {
				t.Errorf("Get in the queue = %v, %v after %v, want the other server's 2 once a slot is free", v, err, time.Since(start))
			}
		})
		synctest.Wait()
		start := time.Now()
		v, err := idle.Get(t.Context(), "key", loads.after(time.Second, nil))
		if v != 2 || err != nil || time.Since(start) != time.Second {
			t.Errorf("Get on an idle server = %v, %v after %v, want 2 after 1s", v, err, time.Since(start))
		}
		wg.Wait()
	})
}

func TestQueueIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{MaxLoads: 1})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				_, _ = c.Get(t.Context(), fmt.Sprint(i), func(ctx context.Context) (int, error) {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					sleep(ctx, time.Second/10)
					return i, nil
				})
			})
			synctest.Wait()
		}
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("loaded in the order %v", order)
		}
	})
}

// TestWaitEndsInTime: every caller gets ErrBusy within the last sixteenth of
// Wait, the one whose loader runs included, at whatever time it came.
func TestWaitEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 16 * time.Second
		s := newStore()
		o := &cachefill.Options[int]{Wait: wait, LoadTimeout: time.Hour}
		caches := []*cachefill.Cache[int]{newCache(t, s, o), newCache(t, s, o)}
		var loads counter
		var wg sync.WaitGroup
		for i := range 200 {
			time.Sleep(40 * time.Millisecond)
			wg.Go(func() {
				start := time.Now()
				_, err := caches[i%2].Get(t.Context(), "key", loads.after(time.Minute, nil))
				took := time.Since(start)
				if !errors.Is(err, cachefill.ErrBusy) || took < wait*15/16 || took > wait {
					t.Errorf("Get: %v after %v, want ErrBusy between 15s and 16s", err, took)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		if v, err := caches[1].Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get at last = %v, %v, want the value of the load that nobody could wait for", v, err)
		}
	})
}

func TestWaitOverServesTheOlderValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{TTL: time.Minute, StaleIfError: time.Hour, Wait: time.Second, Early: -1})
		var loads counter
		_, _ = c.Get(t.Context(), "key", loads.after(0, nil))
		time.Sleep(2 * time.Minute)
		start := time.Now()
		r, err := c.Fetch(t.Context(), "key", loads.after(10*time.Second, nil))
		if r.Value != 1 || err != nil || r.Outcome != cachefill.Stale || time.Since(start) != time.Second {
			t.Errorf("Fetch = %+v, %v after %v, want the stale 1 after 1s", r, err, time.Since(start))
		}
		start = time.Now()
		if _, err = c.Refresh(t.Context(), "key", loads.after(10*time.Second, nil)); !errors.Is(err, cachefill.ErrBusy) {
			t.Errorf("Refresh: %v after %v, want ErrBusy: an older value will not do", err, time.Since(start))
		}
	})
}

func TestWaitOverLoadsAnyway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		slow := newCache(t, s, &cachefill.Options[int]{LoadTimeout: time.Minute, Wait: time.Minute})
		// Not a whole second: that is when the flight polls, with a slot in hand.
		o := &cachefill.Options[int]{Wait: 1500 * time.Millisecond, AfterWait: cachefill.LoadAnyway, MaxLoads: 2}
		hasty := newCache(t, s, o)
		var wg sync.WaitGroup
		wg.Go(func() {
			v, err := slow.Get(t.Context(), "key", func(ctx context.Context) (int, error) { sleep(ctx, 30*time.Second); return 7, nil })
			if v != 7 || err != nil {
				t.Errorf("the slow Get = %v, %v, want 7", v, err)
			}
		})
		synctest.Wait()
		var loads, busy atomic.Int64
		for range 4 {
			wg.Go(func() {
				start := time.Now()
				r, err := hasty.Fetch(t.Context(), "key", func(ctx context.Context) (int, error) {
					loads.Add(1)
					sleep(ctx, 5*time.Second)
					return 8, nil
				})
				if errors.Is(err, cachefill.ErrBusy) { // no slot was free
					busy.Add(1)
					return
				}
				if r.Value != 8 || err != nil || r.Outcome != cachefill.Loaded || time.Since(start) != 6500*time.Millisecond {
					t.Errorf("Fetch = %+v, %v after %v, want an own load after Wait", r, err, time.Since(start))
				}
			})
		}
		wg.Wait()
		if loads.Load() != 2 || busy.Load() != 2 {
			t.Errorf("%d own loads and %d busy, want 2 and 2: MaxLoads holds", loads.Load(), busy.Load())
		}
		synctest.Wait()
		if r, err := hasty.Peek(t.Context(), "key"); r.Value != 7 || err != nil {
			t.Errorf("Peek = %+v, %v, want 7: own loads are not stored", r, err)
		}
	})
}

func TestContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache(t, s, &cachefill.Options[int]{MaxLoads: 1})
		var loads counter
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a.Get(t.Context(), "key", loads.after(5*time.Second, nil)) })
		wg.Go(func() { _, _ = b.Get(t.Context(), "other", loads.after(5*time.Second, nil)) })
		synctest.Wait()
		for name, get := range map[string]func(ctx context.Context) error{
			"waiting here":      func(ctx context.Context) error { _, err := a.Get(ctx, "key", loads.after(0, nil)); return err },
			"waiting elsewhere": func(ctx context.Context) error { _, err := b.Get(ctx, "key", loads.after(0, nil)); return err },
			"in the queue":      func(ctx context.Context) error { _, err := b.Get(ctx, "third", loads.after(0, nil)); return err },
			"refreshing": func(ctx context.Context) error {
				_, err := a.Refresh(ctx, "fourth", loads.after(9*time.Second, nil))
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			start := time.Now()
			if err := get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Millisecond {
				t.Errorf("%s: %v after %v, want the context's end after 10ms", name, err, time.Since(start))
			}
			cancel()
			if err := get(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, with a context that has ended: %v", name, err)
			}
		}
		wg.Wait()
	})
}
