package cachefill_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

func TestLaw6CoolDownDoublesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		caches := []*cachefill.Cache[int]{newCache[int](t, s, nil), newCache[int](t, s, nil)}
		var loads counter
		fail := loads.after(0, errors.New("down"))
		start := time.Now()
		var at []time.Duration
		for i := 0; time.Since(start) < 8*time.Second; i++ {
			before := loads.n.Load()
			_, err := caches[i%2].Get(t.Context(), "key", fail)
			if err == nil {
				t.Fatal("Get succeeded")
			}
			if loads.n.Load() != before {
				at = append(at, time.Since(start))
			} else if !errors.Is(err, cachefill.ErrLoadFailed) {
				t.Fatalf("Get while cooling down: %v, want ErrLoadFailed", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(at) != 4 || at[1] < time.Second || at[2]-at[1] < 2*time.Second || at[3]-at[2] < 4*time.Second {
			t.Errorf("loads at %v, want them about 1, 2 and 4 s apart", at)
		}
	})
}

func TestLaw6BrokenServerLeavesTheNextTryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		broken, healthy := newCache[int](t, s, nil), newCache[int](t, s, nil)
		_, err := broken.Get(t.Context(), "key", func(context.Context) (int, error) { return 0, errors.New("broken") })
		if err == nil {
			t.Fatal("Get succeeded")
		}
		time.Sleep(1100 * time.Millisecond)
		_, err = broken.Get(t.Context(), "key", func(context.Context) (int, error) {
			t.Error("the server that failed loads first again")
			return 0, nil
		})
		if !errors.Is(err, cachefill.ErrLoadFailed) {
			t.Errorf("Get on the broken server: %v, want ErrLoadFailed", err)
		}
		var loads counter
		if v, err := healthy.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get on a healthy server = %v, %v, want 1", v, err)
		}
		synctest.Wait() // for the fill
		if v, err := broken.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get on the broken server = %v, %v, want the other's value", v, err)
		}
	})
}

func TestLaw6StaleIfError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{
			TTL: time.Minute, StaleIfError: time.Hour, SoftTimeout: time.Second, Early: -1})
		var loads counter
		if _, err := c.Get(t.Context(), "key", loads.after(0, nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		r, err := c.Fetch(t.Context(), "key", loads.after(0, errors.New("down")))
		if err != nil || r.Value != 1 || r.Outcome != cachefill.Stale || r.Age < 2*time.Minute {
			t.Errorf("Fetch with a failing loader = %+v, %v, want the stale 1", r, err)
		}
		time.Sleep(time.Minute)
		start := time.Now()
		r, err = c.Fetch(t.Context(), "key", loads.after(10*time.Second, nil))
		if err != nil || r.Value != 1 || r.Outcome != cachefill.Stale || time.Since(start) != time.Second {
			t.Errorf("Fetch with a slow loader = %+v, %v after %v, want the stale 1 after 1s", r, err, time.Since(start))
		}
		time.Sleep(10 * time.Second)
		if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 3 || err != nil {
			t.Errorf("Get after the slow load = %v, %v, want 3", v, err)
		}
	})
}
