package cachefill_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
)

// commandCount is a go-redis hook that counts what the client sends. What the
// subscription sends is not counted: it is the process's, not a key's.
type commandCount struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *commandCount) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *commandCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd.Name())
		return next(ctx, cmd)
	}
}

func (c *commandCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			c.count(cmd.Name())
		}
		return next(ctx, cmds)
	}
}

func (c *commandCount) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name == "get" || name == "eval" || name == "evalsha" {
		c.counts[name]++
	}
}

// take returns the counts since the last time.
func (c *commandCount) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.counts
	c.counts = make(map[string]int)
	return taken
}

// countingServer is one of a fleet, and counts its commands.
func countingServer(t *testing.T, addr string) (*cachefill.Cache[int], *commandCount) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	count := &commandCount{counts: make(map[string]int)}
	rdb.AddHook(count)
	c := newCache(t, newRedisStore(t, rdb), patient(cachefill.Options[int]{}))
	warm := func(context.Context) (int, error) { return 0, nil }
	if _, err := c.Get(t.Context(), "warm "+fmt.Sprint(&count), warm); err != nil { // loads the scripts
		t.Fatal(err)
	}
	until(t, "the fill", func() bool { _, err := c.Peek(t.Context(), "warm "+fmt.Sprint(&count)); return err == nil })
	count.take()
	return c, count
}

// The budget of the design: a hit is one GET; a cold fill a GET, a claim and a
// fill; a waiter's a GET and a claim, for the value comes with the wake-up.
func TestRedisCommandsPerCall(t *testing.T) {
	addr := servertest.Redis(t).Addr
	a, countA := countingServer(t, addr)
	b, countB := countingServer(t, addr)
	g := newGate()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = a.Get(t.Context(), "key", g.load) })
	g.begun(t, 1)
	wg.Go(func() { _, _ = b.Get(t.Context(), "key", g.load) })
	until(t, "the waiter's claim", func() bool {
		countB.mu.Lock()
		defer countB.mu.Unlock()
		return countB.counts["evalsha"] == 1
	})
	close(g.open)
	wg.Wait()
	closeCache(t, a) // the fill is done
	want := func(what string, got map[string]int, want map[string]int) {
		t.Helper()
		if !maps.Equal(got, want) {
			t.Errorf("%s sent %v, want %v", what, got, want)
		}
	}
	want("cold fill", countA.take(), map[string]int{"get": 1, "evalsha": 2})
	want("waiter", countB.take(), map[string]int{"get": 1, "evalsha": 1})
	_, _ = b.Get(t.Context(), "key", g.load)
	want("hit", countB.take(), map[string]int{"get": 1})
}

// However many callers a process has, one flight per key talks to the store.
func TestRedisCommandsPerStampede(t *testing.T) {
	addr := servertest.Redis(t).Addr
	var wg sync.WaitGroup
	g := newGate()
	var counts []*commandCount
	for range 4 {
		c, count := countingServer(t, addr)
		counts = append(counts, count)
		for range 200 {
			wg.Go(func() {
				if v, err := c.Get(t.Context(), "key", g.load); v != 1 || err != nil {
					t.Errorf("Get = %v, %v, want 1", v, err)
				}
			})
		}
	}
	g.begun(t, 1)
	close(g.open)
	wg.Wait()
	for i, count := range counts {
		total := 0
		got := count.take()
		for _, n := range got {
			total += n
		}
		if total > 5 {
			t.Errorf("process %d sent %v, want at most 5 commands", i, got)
		}
	}
}
