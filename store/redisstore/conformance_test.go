package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
	"github.com/herdgate/herdgate/store/storetest"
)

func TestConformanceSingle(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	conform(t, storetest.Backend{Facts: store.Facts{Fences: true}, Announces: true}, func(t testing.TB) redis.UniversalClient { return single(t, server.Addr) })
}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	cluster := servertest.RedisCluster(t)
	conform(t, storetest.Backend{Announces: true}, func(t testing.TB) redis.UniversalClient {
		return closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()}))
	})
}

func TestConformanceRing(t *testing.T) {
	t.Parallel()
	first, second := servertest.Redis(t), servertest.Redis(t)
	conform(t, storetest.Backend{}, func(t testing.TB) redis.UniversalClient {
		return closing(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": first.Addr, "b": second.Addr}}))
	})
}

// conform runs the suite with b, which declares what differs. Every store has a
// client of its own, as in another process.
func conform(t *testing.T, b storetest.Backend, dial func(t testing.TB) redis.UniversalClient) {
	open := func(t testing.TB) *redisstore.Store {
		return newStore(t, dial(t), &redisstore.Options{MaxValue: 1 << 20, Fences: b.Facts.Fences})
	}
	b.Cache = func(t testing.TB) store.Cache { return open(t) }
	b.Leaser = func(t testing.TB) store.Leaser { return open(t) }
	b.Second = func(t testing.TB, _ any) any { return open(t) }
	b.Facts.MinTTL = time.Millisecond
	b.Watches = true
	b.Queues = true
	b.Puts = true
	b.Expires = true
	b.ReadsInBatch = true
	b.RenewsInBatch = true
	b.DeletesInBatch = true
	b.Breaks = true
	b.TellsTime = true
	b.Shards = true
	b.MaxValue = 1<<20 + 1
	storetest.Test(t, b)
}

// newStore returns a store that is closed when the test ends.
func newStore(t testing.TB, rdb redis.UniversalClient, opts *redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(rdb, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func single(t testing.TB, addr string) *redis.Client {
	return closing(t, redis.NewClient(&redis.Options{Addr: addr}))
}

// closing closes c when the test ends.
func closing[C interface{ Close() error }](t testing.TB, c C) C {
	t.Cleanup(func() { _ = c.Close() })
	return c
}
