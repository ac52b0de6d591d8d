package guard

import (
	"context"
	"testing"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

func leasers(b *testing.B, bench func(b *testing.B, s store.Leaser)) {
	b.Run("memory", func(b *testing.B) { bench(b, &placed{memstore.New(nil), true}) })
	b.Run("redis", func(b *testing.B) {
		s, commands := redisLeaser(b, servertest.Redis(b).Addr)
		bench(b, s)
		b.ReportMetric(float64(commands.n.Load())/float64(b.N), "commands/op")
	})
}

func do(b *testing.B, g *Guard) {
	if err := g.Do(b.Context(), "x", func(context.Context) error { return nil }); err != nil {
		b.Error(err)
	}
}

// BenchmarkPair is an acquire and a release that nobody disputes.
func BenchmarkPair(b *testing.B) {
	leasers(b, func(b *testing.B, s store.Leaser) {
		g, err := New(s, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			do(b, g)
		}
		_ = g.Close(b.Context())
	})
}

// BenchmarkContended is a turn of one of many callers, two guards' worth.
func BenchmarkContended(b *testing.B) {
	leasers(b, func(b *testing.B, s store.Leaser) {
		guards := make([]*Guard, 2)
		for i := range guards {
			var err error
			if guards[i], err = New(s, &Options{Namespace: "bench"}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				do(b, guards[i%2])
			}
		})
		for _, g := range guards {
			_ = g.Close(b.Context())
		}
	})
}

// BenchmarkReentry is acquiring a lease once more under its own context.
func BenchmarkReentry(b *testing.B) {
	g, err := New(memstore.New(nil), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	err = g.Do(b.Context(), "x", func(ctx context.Context) error {
		for b.Loop() {
			l, err := g.Acquire(ctx, "x", nil)
			if err != nil {
				return err
			}
			_ = l.Release(ctx)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
