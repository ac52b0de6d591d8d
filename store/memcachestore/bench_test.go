package memcachestore

import (
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
)

// BenchmarkHit compares a hit of the store with a plain Get of gomemcache, of
// 1 KiB by 16 callers per processor.
func BenchmarkHit(b *testing.B) {
	client := memcache.New(servertest.Memcached(b).Addr)
	client.MaxIdleConns = 64
	b.Cleanup(func() { client.Close() })
	s, err := New(client, nil)
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s, "k", strings.Repeat("x", 1<<10))
	run := func(name string, get func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := get(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
	run("gomemcache", func() error { _, err := client.Get("herdgate:v:k"); return err })
	run("store", func() error { _, err := s.Get(b.Context(), "k"); return err })
}

// BenchmarkColdFill is a claim, a fill and a Delete: four commands.
func BenchmarkColdFill(b *testing.B) {
	s, _ := newStore(b, servertest.Memcached(b).Addr)
	b.ReportAllocs()
	for b.Loop() {
		fill(b, s, "k", "value")
		if err := s.Delete(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}
