// Command quickstart guards one slow function with Redis. Start it several
// times at once: the report is built once, and all of them print it.
//
//	go run ./examples/quickstart -redis localhost:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store/redisstore"
)

// Report is what takes long to make.
type Report struct {
	Orders int
	Made   time.Time
}

func buildReport(context.Context) (Report, error) {
	fmt.Println("building the report ...")
	time.Sleep(2 * time.Second)
	return Report{Orders: 4711, Made: time.Now()}, nil
}

func main() {
	addr := flag.String("redis", "localhost:6379", "host:port of Redis")
	flag.Parse()
	if err := run(context.Background(), *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	store, err := redisstore.New(rdb, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	reports, err := cachefill.New(store, &cachefill.Options[Report]{TTL: 10 * time.Second, Stale: time.Minute})
	if err != nil {
		return err
	}
	defer reports.Close(ctx)
	for range 5 {
		r, err := reports.Fetch(ctx, "orders", buildReport)
		if err != nil {
			return err
		}
		fmt.Printf("%d orders, %v, %v old\n", r.Value.Orders, r.Outcome, r.Age.Round(time.Millisecond))
	}
	return nil
}
