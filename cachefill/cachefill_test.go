package cachefill_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// remote makes a store of this process look like one that other processes
// share, so that nothing is taken in line.
type remote struct{ *memstore.Store }

func (r remote) Facts() store.Facts {
	f := r.Store.Facts()
	f.Local = false
	return f
}

func newStore() store.Cache { return remote{memstore.New(nil)} }

func newCache[V any](t testing.TB, s store.Cache, o *cachefill.Options[V]) *cachefill.Cache[V] {
	t.Helper()
	c, err := cachefill.New(s, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { closeCache(t, c) })
	return c
}

func closeCache[V any](t testing.TB, c *cachefill.Cache[V]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// counter is a loader that counts its loads.
type counter struct{ n atomic.Int64 }

func (l *counter) after(d time.Duration, err error) cachefill.Loader[int] {
	return func(ctx context.Context) (int, error) {
		n := l.n.Add(1)
		if !sleep(ctx, d) {
			return 0, ctx.Err()
		}
		return int(n), err
	}
}

// sleep is work that takes d and obeys its context.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func TestLaw1OneLoadForManyCallersOnManyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers, callers = 8, 50
		s := newStore()
		var loads counter
		var wg sync.WaitGroup
		for range servers {
			c := newCache(t, s, &cachefill.Options[int]{})
			for range callers {
				wg.Go(func() {
					v, err := c.Get(t.Context(), "key", loads.after(200*time.Millisecond, nil))
					if v != 1 || err != nil {
						t.Errorf("Get = %v, %v, want the first load's value", v, err)
					}
				})
			}
		}
		start := time.Now()
		wg.Wait()
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("took %v, want the time of one load", took)
		}
	})
}

func TestHitsAreFreshAndAged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{Early: -1})
		var loads counter
		for i, want := range []cachefill.Outcome{cachefill.Loaded, cachefill.Fresh} {
			r, err := c.Fetch(t.Context(), "key", loads.after(time.Second, nil))
			if err != nil || r.Outcome != want || r.Value != 1 {
				t.Errorf("Fetch %d = %+v, %v, want 1, %v", i, r, err, want)
			}
			if i == 1 && r.Age != 10*time.Second {
				t.Errorf("age %v, want 10s", r.Age)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

func TestStaleWhileOneLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[int]{TTL: time.Minute, Stale: time.Minute, Early: -1})
		var loads counter
		fetch := func() (cachefill.Result[int], error) {
			return c.Fetch(t.Context(), "key", loads.after(time.Second, nil))
		}
		if _, err := fetch(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		for range 3 {
			r, err := fetch()
			if err != nil || r.Value != 1 || r.Outcome != cachefill.Stale {
				t.Errorf("Fetch of a stale value = %+v, %v, want 1, stale", r, err)
			}
		}
		time.Sleep(2 * time.Second)
		if r, err := fetch(); err != nil || r.Value != 2 || r.Outcome != cachefill.Fresh {
			t.Errorf("Fetch after the refresh = %+v, %v, want 2, fresh", r, err)
		}
		if got := loads.n.Load(); got != 2 {
			t.Errorf("%d loads, want 2", got)
		}
	})
}

func TestLaw6FailureIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errDown := errors.New("database down")
		o := &cachefill.Options[int]{Errors: map[string]error{"down": errDown}}
		s := newStore()
		var loads counter
		var wg sync.WaitGroup
		start := time.Now()
		for range 4 {
			c := newCache(t, s, o)
			for range 25 {
				wg.Go(func() {
					_, err := c.Get(t.Context(), "key", loads.after(50*time.Millisecond, fmt.Errorf("query: %w", errDown)))
					if !errors.Is(err, errDown) {
						t.Errorf("Get: %v, want the loader's error", err)
					}
				})
			}
		}
		wg.Wait()
		if got := loads.n.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("took %v, want the time of one load", took)
		}
	})
}

// Who comes while a load runs waits for it, also if it looks again in the end.
func TestOutcomeOfLateCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		var loads counter
		load := loads.after(2*time.Second, nil)
		var wg sync.WaitGroup
		for _, c := range []*cachefill.Cache[int]{a, b, a, b} {
			wg.Go(func() {
				r, err := c.Fetch(t.Context(), "key", load)
				if err != nil || r.Outcome != cachefill.Loaded && r.Outcome != cachefill.Waited {
					t.Errorf("Fetch = %+v, %v, want it loaded or waited for", r, err)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		wg.Wait()
		if a.Stats().Waits+b.Stats().Waits != 3 {
			t.Errorf("counted %d and %d waits, want 3 in sum", a.Stats().Waits, b.Stats().Waits)
		}
	})
}
