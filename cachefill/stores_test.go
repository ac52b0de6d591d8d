package cachefill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memcachestore"
	"github.com/herdgate/herdgate/store/redisstore"
)

// fleet makes the stores of servers that share one real server, each with a
// client of its own.
type fleet func(t testing.TB) store.Cache

// onEveryStore runs f on a fleet of each store.
func onEveryStore(t *testing.T, f func(t *testing.T, join fleet)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := newStore()
		f(t, func(testing.TB) store.Cache { return s })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		addr := servertest.Redis(t).Addr
		f(t, func(t testing.TB) store.Cache { return redisStore(t, addr) })
	})
	t.Run("redis cluster", func(t *testing.T) {
		t.Parallel()
		addrs := servertest.RedisCluster(t).Addrs()
		f(t, func(t testing.TB) store.Cache {
			return newRedisStore(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}))
		})
	})
	t.Run("memcached", func(t *testing.T) {
		t.Parallel()
		addr := servertest.Memcached(t).Addr
		f(t, func(t testing.TB) store.Cache { return memcachedStore(t, addr) })
	})
}

func redisStore(t testing.TB, addr string) store.Cache {
	return newRedisStore(t, redis.NewClient(&redis.Options{Addr: addr}))
}

func newRedisStore(t testing.TB, rdb redis.UniversalClient) store.Cache {
	t.Helper()
	s, err := redisstore.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(); _ = rdb.Close() })
	return s
}

func memcachedStore(t testing.TB, addr string) store.Cache {
	t.Helper()
	client := memcache.New(addr)
	client.MaxIdleConns = 64
	s, err := memcachestore.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return s
}

// patient are settings that a loaded machine does not exhaust.
func patient[V any](o cachefill.Options[V]) *cachefill.Options[V] {
	o.StoreBudget = 10 * time.Second
	o.Wait = time.Minute
	return &o
}

// until polls a condition that is to become true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// gate is a loader that waits until it is opened.
type gate struct {
	loads atomic.Int64
	open  chan struct{}
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) load(ctx context.Context) (int, error) {
	n := g.loads.Add(1)
	select {
	case <-g.open:
		return int(n), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (g *gate) begun(t testing.TB, n int64) {
	t.Helper()
	until(t, fmt.Sprintf("%d loads to begin", n), func() bool { return g.loads.Load() >= n })
}

func TestLaw1OneLoadOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		g := newGate()
		var wg sync.WaitGroup
		for range 8 {
			c := newCache(t, join(t), patient(cachefill.Options[int]{}))
			for range 50 {
				wg.Go(func() {
					if v, err := c.Get(t.Context(), "key", g.load); v != 1 || err != nil {
						t.Errorf("Get = %v, %v, want 1", v, err)
					}
				})
			}
		}
		g.begun(t, 1)
		close(g.open)
		wg.Wait()
		if got := g.loads.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

func TestLaw2InvalidateDuringALoadOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		a := newCache(t, join(t), patient(cachefill.Options[string]{}))
		b := newCache(t, join(t), patient(cachefill.Options[string]{}))
		begun, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			v, err := a.Get(t.Context(), "key", func(context.Context) (string, error) {
				close(begun)
				<-release
				return "old", nil
			})
			if v != "old" || err != nil {
				t.Errorf("Get that began before = %q, %v, want its own load's value", v, err)
			}
		})
		<-begun
		if err := b.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		newer := func(context.Context) (string, error) { return "new", nil }
		if v, err := b.Get(t.Context(), "key", newer); v != "new" || err != nil {
			t.Errorf("Get after Invalidate = %q, %v, want the newer value", v, err)
		}
		close(release)
		wg.Wait()
		for name, c := range map[string]*cachefill.Cache[string]{"a": a, "b": b} {
			if v, err := c.Get(t.Context(), "key", newer); v != "new" || err != nil {
				t.Errorf("Get on %s at last = %q, %v: the load that began before must not be stored", name, v, err)
			}
		}
	})
}

func TestLaw3ReadYourInvalidationOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		var truth atomic.Int64
		load := func(context.Context) (int, error) { return int(truth.Load()), nil }
		var caches []*cachefill.Cache[int]
		for range 3 {
			caches = append(caches, newCache(t, join(t), patient(cachefill.Options[int]{Stale: time.Hour})))
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for _, c := range caches {
			for range 4 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							_, _ = c.Get(t.Context(), "key", load)
						}
					}
				})
			}
		}
		for i := range 100 {
			truth.Add(1)
			if err := caches[i%3].Invalidate(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			want := int(truth.Load())
			if v, err := caches[(i+1)%3].Get(t.Context(), "key", load); v != want || err != nil {
				t.Fatalf("round %d: Get after Invalidate = %v, %v, want %v", i, v, err, want)
			}
		}
		close(stop)
		wg.Wait()
	})
}

func TestLaw5PanicFreesOtherServersOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		a := newCache(t, join(t), patient(cachefill.Options[int]{}))
		b := newCache(t, join(t), patient(cachefill.Options[int]{}))
		begun, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want the loader's panic", p)
				}
			}()
			_, _ = a.Get(t.Context(), "key", func(context.Context) (int, error) {
				close(begun)
				<-release
				panic("boom")
			})
		})
		<-begun
		g := newGate()
		close(g.open)
		for range 5 {
			wg.Go(func() {
				if v, err := b.Get(t.Context(), "key", g.load); v != 1 || err != nil {
					t.Errorf("Get elsewhere = %v, %v, want 1", v, err)
				}
			})
		}
		close(release)
		wg.Wait()
		if got := g.loads.Load(); got != 1 {
			t.Errorf("%d loads after the panic, want 1", got)
		}
	})
}

func TestLaw6FailureIsSharedOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		errDown := errors.New("database down")
		o := patient(cachefill.Options[int]{Errors: map[string]error{"down": errDown}, CoolDown: time.Minute})
		release := make(chan struct{})
		var loads atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			c := newCache(t, join(t), o)
			for range 25 {
				wg.Go(func() {
					_, err := c.Get(t.Context(), "key", func(context.Context) (int, error) {
						loads.Add(1)
						<-release
						return 0, fmt.Errorf("query: %w", errDown)
					})
					if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "query: database down") {
						t.Errorf("Get: %v, want the loader's error", err)
					}
				})
			}
		}
		until(t, "a load", func() bool { return loads.Load() > 0 })
		close(release)
		wg.Wait()
		if got := loads.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

func TestLaw7TooLargeIsSharedInTheProcessOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		o := patient(cachefill.Options[[]byte]{Codec: cachefill.Raw()})
		var loads atomic.Int64
		load := func(context.Context) ([]byte, error) {
			loads.Add(1)
			time.Sleep(50 * time.Millisecond) // the work
			return make([]byte, 65<<20), nil
		}
		var caches []*cachefill.Cache[[]byte]
		for range 2 {
			caches = append(caches, newCache(t, join(t), o))
		}
		var wg sync.WaitGroup
		for _, c := range caches {
			for range 20 {
				wg.Go(func() {
					v, err := c.Get(t.Context(), "key", load)
					if len(v) != 65<<20 || err != nil {
						t.Errorf("Get = %d bytes, %v", len(v), err)
					}
				})
			}
		}
		wg.Wait()
		if got := loads.Load(); got > 8 {
			t.Errorf("%d loads for 40 callers, want them coalesced in each process", got)
		}
	})
}

func TestStaleIsServedWhileAnotherServerLoadsOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		o := patient(cachefill.Options[int]{TTL: time.Hour, Stale: time.Hour, Early: -1})
		a, b := newCache(t, join(t), o), newCache(t, join(t), o)
		g := newGate()
		if err := a.Set(t.Context(), "key", 41); err != nil {
			t.Fatal(err)
		}
		if err := a.Expire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*cachefill.Cache[int]{a, b, a, b} {
			r, err := c.Fetch(t.Context(), "key", g.load)
			if err != nil || r.Value != 41 || r.Outcome != cachefill.Stale {
				t.Errorf("Fetch = %+v, %v, want the stale 41", r, err)
			}
		}
		g.begun(t, 1)
		close(g.open)
		until(t, "the refreshed value", func() bool {
			r, err := b.Fetch(t.Context(), "key", g.load)
			return err == nil && r.Value == 1 && r.Outcome == cachefill.Fresh
		})
		if got := g.loads.Load(); got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

func TestRefreshLoadsAnewOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		o := patient(cachefill.Options[int]{Stale: time.Hour, Near: 10})
		a, b := newCache(t, join(t), o), newCache(t, join(t), o)
		if err := a.Set(t.Context(), "key", 41); err != nil {
			t.Fatal(err)
		}
		v, err := b.Refresh(t.Context(), "key", func(ctx context.Context) (int, error) {
			old, _ := cachefill.Old[int](ctx)
			return old + 1, nil
		})
		if v != 42 || err != nil {
			t.Errorf("Refresh = %v, %v, want 42", v, err)
		}
		until(t, "the refreshed value", func() bool {
			r, err := a.Peek(t.Context(), "key")
			return err == nil && r.Value == 42
		})
	})
}

func TestInvalidateManyKeysOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		c := newCache(t, join(t), patient(cachefill.Options[string]{}))
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("key %d {x}", i))
			if err := c.Set(t.Context(), keys[i], "v"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Invalidate(t.Context(), keys...); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if r, err := c.Peek(t.Context(), key); !errors.Is(err, cachefill.ErrMiss) {
				t.Errorf("Peek(%q) = %+v, %v, want ErrMiss", key, r, err)
			}
		}
	})
}

func TestLaw12AnyKeyAndValueOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, join fleet) {
		a := newCache(t, join(t), patient(cachefill.Options[[]byte]{Codec: cachefill.Raw()}))
		b := newCache(t, join(t), patient(cachefill.Options[[]byte]{Codec: cachefill.Raw(), CompressAbove: 1}))
		for _, s := range []string{"", "a b\r\n", "\x00{}", "hg\x01", strings.Repeat("long", 10_000)} {
			if err := a.Set(t.Context(), s, []byte(s)); err != nil {
				t.Fatal(err)
			}
			r, err := b.Peek(t.Context(), s)
			if string(r.Value) != s || err != nil {
				t.Errorf("Peek(%.10q) = %.10q, %v", s, r.Value, err)
			}
		}
	})
}
