package cachefill_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// slowReply is a store whose Gets are held up after they were answered.
type slowReply struct {
	store.Cache
	answered chan struct{} // receives when a Get has its answer
	release  chan struct{} // lets it return
	on       atomic.Bool
}

func (s *slowReply) Get(ctx context.Context, key string) (store.Entry, error) {
	entry, err := s.Cache.Get(ctx, key)
	if s.on.Load() {
		s.answered <- struct{}{}
		<-s.release
	}
	return entry, err
}

func TestLaw3NearRefusesOvertakenReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowReply{Cache: newStore(), answered: make(chan struct{}), release: make(chan struct{})}
		c := newCache(t, s, &cachefill.Options[int]{Near: 10, Early: -1, StoreBudget: time.Minute})
		if err := c.Set(t.Context(), "key", 1); err != nil {
			t.Fatal(err)
		}
		s.on.Store(true)
		two := func(context.Context) (int, error) { return 2, nil }
		done := make(chan struct{})
		go func() {
			defer close(done)
			if v, err := c.Get(t.Context(), "key", two); v != 1 || err != nil {
				t.Errorf("Get that began before = %v, %v, want 1", v, err)
			}
		}()
		<-s.answered
		s.on.Store(false)
		if err := c.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		s.release <- struct{}{}
		<-done
		if v, err := c.Get(t.Context(), "key", two); v != 2 || err != nil {
			t.Errorf("Get after Invalidate = %v, %v, want 2: the overtaken reply must not be kept near", v, err)
		}
	})
}

// newFollower is a server with a near cache that would keep a value for an
// hour, unless it hears that it changed.
func newFollower(t *testing.T, s store.Cache) *cachefill.Cache[int] {
	return newCache(t, s, &cachefill.Options[int]{Near: 10, NearTTL: time.Hour, TTL: 2 * time.Hour, Stale: time.Hour, Early: -1})
}

func TestNearHearsOfChangesElsewhere(t *testing.T) {
	stores := map[string]func(t *testing.T) (a, b store.Cache){
		"memory": func(t *testing.T) (a, b store.Cache) {
			s := remote{memstore.New(nil)}
			return s, s
		},
		"redis": func(t *testing.T) (a, b store.Cache) {
			addr := servertest.Redis(t).Addr
			return redisStore(t, addr), redisStore(t, addr)
		},
		"redis cluster": func(t *testing.T) (a, b store.Cache) {
			addrs := servertest.RedisCluster(t).Addrs()
			client := func() redis.UniversalClient { return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}) }
			return newRedisStore(t, client()), newRedisStore(t, client())
		},
	}
	for name, make := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sa, sb := make(t)
			a, b := newFollower(t, sa), newFollower(t, sb)
			value := 0
			change := func(what string, f func() error) {
				t.Helper()
				load := func(context.Context) (int, error) { return value, nil }
				until(t, "a near hit", func() bool {
					_, err := b.Get(t.Context(), "key", load)
					return err == nil && b.Stats().NearHits > 0
				})
				value++
				until(t, what+" to be heard", func() bool {
					if err := f(); err != nil {
						t.Fatal(err)
					}
					v, err := b.Get(t.Context(), "key", func(context.Context) (int, error) { return value, nil })
					return err == nil && v == value
				})
			}
			change("Invalidate", func() error { return a.Invalidate(t.Context(), "key") })
			change("Set", func() error { return a.Set(t.Context(), "key", value) })
			change("Expire", func() error { return a.Expire(t.Context(), "key") })
		})
	}
}
