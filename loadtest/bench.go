package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/redis/go-redis/v9"
)

// bench is one run of the load test.
type bench struct {
	ctx      context.Context
	quick    bool
	repeat   int // repetitions of the cold key
	servers  int // processes of a fleet
	callers  int // callers of a process in the cold scenario
	dir      string
	addr     string // of the shared Redis
	prefix   string // of all keys
	lastKey  int
	progress *progress
}

// newBench makes a bench on the Redis at addr, or on one of its own.
func newBench(ctx context.Context, addr string) (*bench, error) {
	dir, err := os.MkdirTemp("", "herdgate-loadtest-")
	if err != nil {
		return nil, err
	}
	b := &bench{
		ctx: ctx, servers: 8, callers: 200,
		dir: dir, addr: addr, prefix: fmt.Sprintf("loadtest:%x:", time.Now().UnixNano()),
		progress: new(progress),
	}
	if addr == "" {
		shared, err := b.startRedis()
		if err != nil {
			_ = os.RemoveAll(dir)
			return nil, err
		}
		b.addr = shared.Addr
	}
	return b, nil
}

// close removes what the run left on disk. Its servers die with the process.
func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// startRedis starts a Redis server for a scenario that breaks it or needs
// options. Kill it.
func (b *bench) startRedis(args ...string) (*servertest.Process, error) {
	dir := filepath.Join(b.dir, fmt.Sprint("redis-", now()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return servertest.StartRedis(b.ctx, dir, args...)
}

// key returns a key that was never used before.
func (b *bench) key(name string) string {
	b.lastKey++
	return fmt.Sprintf("%s%s:%d", b.prefix, name, b.lastKey)
}

func (b *bench) keys(name string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = b.key(name)
	}
	return keys
}

// fleet starts the servers of a scenario on the shared Redis, and warms them.
func (b *bench) fleet(contender string, t Tuning) (*Fleet, error) {
	return b.fleetOn(b.addr, contender, t)
}

// fleetOn starts the servers of a scenario on the Redis at addr, and warms them.
func (b *bench) fleetOn(addr, contender string, t Tuning) (*Fleet, error) {
	f, err := startFleet(b.ctx, b.servers, Setup{Contender: contender, Redis: addr, Tuning: t})
	if err != nil {
		return nil, err
	}
	if err := b.warm(f); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// warm opens the connections of every server and loads the scripts, so that
// what follows measures neither.
func (b *bench) warm(f *Fleet) error {
	calls, stuck, err := f.Do(b.ctx, Job{
		Callers: 2 * maxPool, Keys: b.keys("warm", 2*maxPool), Shuffle: true, Calls: 2,
		Load: LoadSpec{Takes: 5 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	if v := append(lawServed(9, calls), lawReturned(9, stuck)...); len(v) > 0 {
		return fmt.Errorf("loadtest: warming up: %s", v[0].Text)
	}
	f.Forget()
	_, err = f.Disturbed(b.ctx) // begin to count
	return err
}

// maxPool is about how many connections a client of two processors opens.
const maxPool = 20

// patience is how long the bench waits for something that may never come.
func (b *bench) patience() time.Duration {
	if b.quick {
		return 4 * time.Second
	}
	return 12 * time.Second
}

// pick returns full, or quick in a quick run.
func pick[T any](b *bench, full, quick T) T {
	if b.quick {
		return quick
	}
	return full
}

// redisVersion returns the version of the Redis at addr.
func redisVersion(ctx context.Context, addr string) string {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	info, err := rdb.InfoMap(ctx, "server").Result()
	if err != nil {
		return "unknown"
	}
	return info["Server"]["redis_version"]
}
