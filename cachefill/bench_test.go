package cachefill_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/redisstore"
)

// BenchmarkNearHit asks what a hit in the near cache costs on top of otter.
func BenchmarkNearHit(b *testing.B) {
	b.Run("otter", func(b *testing.B) {
		o, err := otter.New(&otter.Options[string, *int]{MaximumSize: 1000})
		if err != nil {
			b.Fatal(err)
		}
		o.Set("key", new(int))
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				o.GetIfPresent("key")
			}
		})
	})
	b.Run("herdgate", func(b *testing.B) {
		c := newCache(b, memstore.New(nil), &cachefill.Options[int]{Near: 1000, NearTTL: time.Hour, TTL: time.Hour})
		load := func(context.Context) (int, error) { return 1, nil }
		ctx := context.Background()
		_, _ = c.Get(ctx, "key", load)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.Get(ctx, "key", load); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// BenchmarkMemoryHit asks what a hit in the embedded store costs.
func BenchmarkMemoryHit(b *testing.B) {
	c := newCache[int](b, memstore.New(nil), nil)
	load := func(context.Context) (int, error) { return 1, nil }
	ctx := context.Background()
	_, _ = c.Get(ctx, "key", load)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Get(ctx, "key", load); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWaiters asks how much memory a waiter takes and when the last of
// many wakes.
func BenchmarkWaiters(b *testing.B) {
	const waiters = 10_000
	wait := func(b *testing.B, get func(load func() int)) {
		var late time.Duration
		var bytes uint64
		for range b.N {
			release := make(chan struct{})
			var ended time.Time
			load := func() int { <-release; ended = time.Now(); return 1 }
			var wg, ready sync.WaitGroup
			ready.Add(waiters)
			begin := make(chan struct{})
			woken := make([]time.Time, waiters)
			for i := range waiters {
				wg.Go(func() { ready.Done(); <-begin; get(load); woken[i] = time.Now() })
			}
			ready.Wait()
			before := heap()
			close(begin)
			time.Sleep(200 * time.Millisecond) // until everybody waits
			bytes += heap() - before
			close(release)
			wg.Wait()
			for _, at := range woken {
				late = max(late, at.Sub(ended))
			}
		}
		b.ReportMetric(float64(late.Microseconds())/1000, "ms-last-wake")
		b.ReportMetric(float64(bytes)/float64(b.N)/waiters, "B/waiter")
	}
	b.Run("singleflight", func(b *testing.B) {
		var g singleflight.Group
		wait(b, func(load func() int) { _, _, _ = g.Do("key", func() (any, error) { return load(), nil }) })
	})
	b.Run("otter", func(b *testing.B) {
		n := 0
		o := otter.Must(&otter.Options[string, int]{MaximumSize: 1000})
		var once sync.Mutex
		wait(b, func(load func() int) {
			once.Lock()
			key := fmt.Sprint("key", n)
			once.Unlock()
			_, _ = o.Get(context.Background(), key, otter.LoaderFunc[string, int](func(context.Context, string) (int, error) {
				v := load()
				once.Lock()
				n++
				once.Unlock()
				return v, nil
			}))
		})
	})
	b.Run("herdgate", func(b *testing.B) {
		c := newCache(b, newStore(), &cachefill.Options[int]{TTL: time.Nanosecond, Early: -1})
		wait(b, func(load func() int) {
			_, _ = c.Get(context.Background(), "key", func(context.Context) (int, error) { return load(), nil })
		})
	})
}

// heap is how much memory is in use, goroutine stacks aside.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRedisHit asks what a hit in Redis costs beside a plain GET of
// go-redis, with 64 callers of one key and of 64.
func BenchmarkRedisHit(b *testing.B) {
	rdb := redis.NewClient(&redis.Options{Addr: servertest.Redis(b).Addr, PoolSize: 64})
	defer rdb.Close()
	s, err := redisstore.New(rdb, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := newCache(b, s, &cachefill.Options[[]byte]{TTL: time.Hour, Codec: cachefill.Raw()})
	ctx, value := context.Background(), make([]byte, 1024)
	load := func(context.Context) ([]byte, error) { return value, nil }
	key := func(i int64) string { return fmt.Sprint("key", i) }
	for i := range int64(64) {
		if err := rdb.Set(ctx, key(i), value, 0).Err(); err != nil {
			b.Fatal(err)
		}
		if err := c.Set(ctx, key(i), value); err != nil {
			b.Fatal(err)
		}
	}
	gets := map[string]func(key string) error{
		"go-redis": func(key string) error { _, err := rdb.Get(ctx, key).Bytes(); return err },
		"herdgate": func(key string) error { _, err := c.Get(ctx, key, load); return err },
	}
	for _, keys := range []int64{1, 64} {
		for _, name := range []string{"go-redis", "herdgate"} {
			b.Run(fmt.Sprintf("%s/keys=%d", name, keys), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(64 / runtime.GOMAXPROCS(0))
				var callers atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					k := key(callers.Add(1) % keys)
					for pb.Next() {
						if err := gets[name](k); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}
