package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// callers is how many goroutines per CPU share the client in benchmarks: 64 on
// two.
const callers = 32

// BenchmarkHit compares the cost of a hit with that of the plain GET of
// go-redis, by 64 goroutines on one server.
func BenchmarkHit(b *testing.B) {
	ctx := context.Background()
	rdb := benchClient(b)
	s := newStore(b, rdb, nil)
	ok(b, s.Put(ctx, "key", store.NewToken(), make([]byte, 256), long))
	name := redisstore.Names(s, "key")[0]
	b.Run("go-redis", func(b *testing.B) {
		parallel(b, func() error { _, err := rdb.Get(ctx, name).Bytes(); return err })
	})
	b.Run("redisstore", func(b *testing.B) {
		parallel(b, func() error { _, err := s.Get(ctx, "key"); return err })
	})
}

// BenchmarkFill is a claim and a fill: what one load costs.
func BenchmarkFill(b *testing.B) {
	ctx := context.Background()
	s := newStore(b, benchClient(b), nil)
	value := make([]byte, 256)
	keys := benchKeys()
	parallel(b, func() error {
		key := <-keys
		defer func() { keys <- key }()
		e, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrMiss) {
			return err
		}
		req := request(key)
		req.Seen = e.Version
		a, err := s.Claim(ctx, req)
		if err != nil {
			return err
		}
		return s.Fill(ctx, a.Lease, value, long)
	})
}

// BenchmarkLease is an acquire and a release of a free key.
func BenchmarkLease(b *testing.B) {
	ctx := context.Background()
	s := newStore(b, benchClient(b), nil)
	keys := benchKeys()
	parallel(b, func() error {
		key := <-keys
		defer func() { keys <- key }()
		l, err := s.Acquire(ctx, request(key))
		if err != nil {
			return err
		}
		return s.Release(ctx, l)
	})
}

// benchKeys hands out keys to one goroutine each.
func benchKeys() chan string {
	keys := make(chan string, 1000)
	for i := range cap(keys) {
		keys <- "key" + string(rune('0'+i))
	}
	return keys
}

func benchClient(b *testing.B) *redis.Client {
	return closing(b, redis.NewClient(&redis.Options{Addr: servertest.Redis(b).Addr, PoolSize: 64}))
}

func parallel(b *testing.B, op func() error) {
	b.ReportAllocs()
	b.SetParallelism(callers)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := op(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
