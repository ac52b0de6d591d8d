package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// BenchmarkGet is the cost of a hit.
func BenchmarkGet(b *testing.B) {
	s, keys := filled(b, 10_000)
	ctx := context.Background()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Get(ctx, keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetHot is the cost of a hit when every core wants the same key.
func BenchmarkGetHot(b *testing.B) {
	s, keys := filled(b, 1)
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Get(ctx, keys[0]); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkLoad is the cost of a cold key: a miss, a claim and a fill, in a
// store that is full.
func BenchmarkLoad(b *testing.B) {
	s := memstore.New(&memstore.Options{MaxEntries: 10_000})
	ctx := context.Background()
	value := make([]byte, 100)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := fmt.Sprint(i)
		_, _ = s.Get(ctx, key)
		a, err := s.Claim(ctx, store.Request{Key: key, Token: store.NewToken(), TTL: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Fill(ctx, a.Lease, value, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAcquireRelease is the cost of a lease nobody else wants.
func BenchmarkAcquireRelease(b *testing.B) {
	s := memstore.New(nil)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		l, err := s.Acquire(ctx, store.Request{Key: "key", Token: store.NewToken(), TTL: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			b.Fatal(err)
		}
	}
}

// filled returns a store with n entries and their keys.
func filled(b *testing.B, n int) (*memstore.Store, []string) {
	b.Helper()
	s := memstore.New(nil)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("page:", i)
		if err := s.Put(context.Background(), keys[i], store.NewToken(), make([]byte, 100), time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	return s, keys
}
