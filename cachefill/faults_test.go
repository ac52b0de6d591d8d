package cachefill_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/redisstore"
)

// stubborn is a client that waits and retries for long, as go-redis does
// unless told otherwise: the store budget must hold all the same.
func stubborn(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		DialTimeout: time.Minute, MaxRetries: 5})
}

// degradedCalls sends callers at a key whose store does not answer, and checks
// that they all get a value by one load, long before the driver gives up.
func degradedCalls(t *testing.T, c *cachefill.Cache[int]) {
	t.Helper()
	var loads counter
	var wg sync.WaitGroup
	start := time.Now()
	for range 100 {
		wg.Go(func() {
			if _, err := c.Get(t.Context(), "key", loads.after(10*time.Millisecond, nil)); err != nil {
				t.Errorf("Get without the store: %v", err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v: the driver's timeouts were waited for", took)
	}
	if got := loads.n.Load(); got > 3 {
		t.Errorf("%d loads for 100 callers, want them coalesced", got)
	}
}

// recovers checks that the store is used again once it answers.
func recovers(t *testing.T, c *cachefill.Cache[int]) {
	t.Helper()
	var loads counter
	until(t, "a fresh hit", func() bool {
		r, err := c.Fetch(t.Context(), "after", loads.after(0, nil))
		return err == nil && r.Outcome == cachefill.Fresh
	})
}

func TestLaw9RedisKilledAndRestartedEmpty(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	c := newCache[int](t, newRedisStore(t, stubborn(server.Addr)), nil)
	var loads counter
	if _, err := c.Get(t.Context(), "before", loads.after(0, nil)); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	degradedCalls(t, c)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	recovers(t, c)
}

func TestLaw9RedisPausedHalfOpen(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	c := newCache[int](t, newRedisStore(t, stubborn(server.Addr)), nil)
	server.Pause()
	degradedCalls(t, c)
	server.Continue()
	recovers(t, c)
}

func TestLaw9RedisLosesRepliesDuringALoad(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	proxy := servertest.NewProxy(t, server.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: 300 * time.Millisecond, MaxRetries: 1})
	a := newCache[int](t, newRedisStore(t, rdb), nil)
	b := newCache[int](t, redisStore(t, server.Addr), nil)
	g := newGate()
	var wg sync.WaitGroup
	wg.Go(func() {
		if v, err := a.Get(t.Context(), "key", g.load); v != 1 || err != nil {
			t.Errorf("Get = %v, %v, want the load's value although its fill got no reply", v, err)
		}
	})
	g.begun(t, 1)
	proxy.DropReplies()
	close(g.open)
	wg.Wait()
	until(t, "the value elsewhere: the fill was applied, or another load is allowed", func() bool {
		v, err := b.Get(t.Context(), "key", g.load)
		return v > 0 && err == nil
	})
	proxy.Pass()
}

// A Redis that answers, but refuses what we ask, must not hold anybody up.
func TestLaw9RedisThatRefuses(t *testing.T) {
	tests := map[string]func(ctx context.Context, admin *redis.Client) error{
		"no permission for scripts": func(ctx context.Context, admin *redis.Client) error {
			return admin.Do(ctx, "acl", "setuser", "default", "-eval", "-evalsha").Err()
		},
		"read-only": func(ctx context.Context, admin *redis.Client) error {
			return admin.Do(ctx, "replicaof", "127.0.0.1", "1").Err()
		},
		"out of memory": func(ctx context.Context, admin *redis.Client) error {
			return errors.Join(admin.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err(), admin.ConfigSet(ctx, "maxmemory", "1").Err())
		},
		"no permission to write": func(ctx context.Context, admin *redis.Client) error {
			return admin.Do(ctx, "acl", "setuser", "default", "-@write").Err()
		},
	}
	for name, refuse := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Redis(t)
			admin := redis.NewClient(&redis.Options{Addr: server.Addr})
			defer admin.Close()
			var failures []error
			var mu sync.Mutex
			o := &cachefill.Options[int]{OnEvent: func(e cachefill.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == cachefill.StoreFailed {
					failures = append(failures, e.Err)
				}
			}}
			c := newCache(t, redisStore(t, server.Addr), o)
			var loads counter
			if _, err := c.Get(t.Context(), "kept", loads.after(0, nil)); err != nil {
				t.Fatal(err)
			}
			until(t, "the fill", func() bool { _, err := c.Peek(t.Context(), "kept"); return err == nil })
			if err := refuse(t.Context(), admin); err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				r, err := c.Fetch(t.Context(), fmt.Sprint("key", i), loads.after(0, nil))
				if err != nil || r.Outcome != cachefill.Degraded {
					t.Errorf("Fetch = %+v, %v, want a degraded value", r, err)
				}
			}
			if r, err := c.Fetch(t.Context(), "kept", loads.after(0, nil)); err != nil || r.Outcome != cachefill.Fresh {
				t.Errorf("Fetch of what is there = %+v, %v, want it fresh: the server still reads", r, err)
			}
			if err := c.Invalidate(t.Context(), "kept"); err == nil && name != "out of memory" {
				t.Error("Invalidate succeeded on a server that refuses it")
			}
			mu.Lock()
			defer mu.Unlock()
			if len(failures) == 0 {
				t.Error("no StoreFailed event")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = c.Close(ctx) // ends the retries of the invalidation
		})
	}
}

// A store closed under a cache only loses its wake-ups.
func TestRedisStoreClosedUnderTheCache(t *testing.T) {
	server := servertest.Redis(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	s, err := redisstore.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newCache[int](t, s, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var loads counter
	if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
		t.Errorf("Get = %v, %v, want 1", v, err)
	}
	closeCache(t, c) // while the client is open
}
