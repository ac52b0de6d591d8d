package cachefill_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store/memstore"
)

type Report struct {
	Rows int
	ETag string
}

// slowReport stands for an expensive query.
func slowReport(ctx context.Context) (Report, error) {
	fmt.Println("loading")
	return Report{Rows: 42, ETag: `"v1"`}, nil
}

func ExampleGet() {
	ctx := context.Background()
	err := cachefill.SetDefault(ctx, memstore.New(nil), nil) // or redisstore, or memcachestore
	if err != nil {
		log.Fatal(err)
	}

	for range 3 {
		report, err := cachefill.Get(ctx, "report:today", slowReport)
		fmt.Println(report.Rows, err)
	}
	// Output:
	// loading
	// 42 <nil>
	// 42 <nil>
	// 42 <nil>
}

func ExampleCache_Get() {
	reports, err := cachefill.New(memstore.New(nil), &cachefill.Options[Report]{
		TTL:   time.Minute,      // fresh for a minute,
		Stale: 10 * time.Minute, // then served while one server loads anew
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer reports.Close(ctx)

	report, err := reports.Get(ctx, "today", slowReport)
	fmt.Println(report.Rows, err)
	// Output:
	// loading
	// 42 <nil>
}

func ExampleCache_Fetch() {
	ctx := context.Background()
	reports, err := cachefill.New[Report](memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer reports.Close(ctx)

	_ = reports.Set(ctx, "yesterday", Report{Rows: 7})
	for _, key := range []string{"yesterday", "today"} {
		r, err := reports.Fetch(ctx, key, slowReport)
		fmt.Println(r.Value.Rows, r.Outcome, r.Age.Round(time.Minute), err)
	}
	// Output:
	// 7 fresh 0s <nil>
	// loading
	// 42 loaded 0s <nil>
}

func ExampleCache_Invalidate() {
	ctx := context.Background()
	reports, err := cachefill.New[Report](memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer reports.Close(ctx)

	_, _ = reports.Get(ctx, "today", slowReport)
	// The data has changed. Who reads from now on gets nothing older.
	if err := reports.Invalidate(ctx, "today", "yesterday"); err != nil {
		log.Print(err) // the store did not answer: retried in the background
	}
	_, _ = reports.Get(ctx, "today", slowReport)
	// Output:
	// loading
	// loading
}

func ExampleOld() {
	ctx := context.Background()
	reports, err := cachefill.New[Report](memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer reports.Close(ctx)

	_ = reports.Set(ctx, "today", Report{Rows: 42, ETag: `"v1"`})
	report, err := reports.Refresh(ctx, "today", func(ctx context.Context) (Report, error) {
		old, ok := cachefill.Old[Report](ctx)
		if ok && unchanged(old.ETag) {
			return Report{}, cachefill.ErrNotModified // the old one is fresh again
		}
		return slowReport(ctx)
	})
	fmt.Println(report.Rows, err)
	// Output:
	// 42 <nil>
}

// unchanged stands for a conditional request to where the report comes from.
func unchanged(etag string) bool { return etag == `"v1"` }

func ExampleNoStore() {
	ctx := context.Background()
	pages, err := cachefill.New[string](memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer pages.Close(ctx)

	for _, user := range []string{"Ada", "Bob"} {
		page, _ := pages.Get(ctx, "welcome", func(ctx context.Context) (string, error) {
			cachefill.NoStore(ctx) // nobody else may see it
			return "Hello " + user, nil
		})
		fmt.Println(page)
	}
	// Output:
	// Hello Ada
	// Hello Bob
}

func ExampleSetTTL() {
	ctx := context.Background()
	rates, err := cachefill.New[float64](memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer rates.Close(ctx)

	rate, err := rates.Get(ctx, "EUR/USD", func(ctx context.Context) (float64, error) {
		rate, maxAge := 1.09, 5*time.Second // as the bank says
		cachefill.SetTTL(ctx, maxAge)
		return rate, nil
	})
	fmt.Println(rate, err)
	// Output:
	// 1.09 <nil>
}
