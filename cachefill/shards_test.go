package cachefill_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/memcachestore"
)

// twoServers are two memcached servers behind one store.
type twoServers struct {
	store *memcachestore.Store
	first *servertest.Process
}

func newTwoServers(t *testing.T) twoServers {
	t.Helper()
	first, second := servertest.Memcached(t), servertest.Memcached(t)
	servers := new(memcache.ServerList)
	if err := servers.SetServers(first.Addr, second.Addr); err != nil {
		t.Fatal(err)
	}
	client := memcache.NewFromSelector(servers)
	client.MaxIdleConns = 64
	client.Timeout = 10 * time.Second // longer than the store budget
	t.Cleanup(func() { _ = client.Close() })
	s, err := memcachestore.New(client, &memcachestore.Options{Selector: servers})
	if err != nil {
		t.Fatal(err)
	}
	return twoServers{s, first}
}

// fill caches a key of each server many times over.
func (s twoServers) fill(t *testing.T, c *cachefill.Cache[int]) (onFirst, onSecond []string) {
	t.Helper()
	for i := 0; len(onFirst) < 20 || len(onSecond) < 20; i++ {
		key := fmt.Sprint("key", i)
		if err := c.Set(t.Context(), key, 1); err != nil {
			t.Fatal(err)
		}
		if s.store.Shard("fill:"+key) == s.first.Addr {
			onFirst = append(onFirst, key)
		} else {
			onSecond = append(onSecond, key)
		}
	}
	return onFirst, onSecond
}

// TestLaw9DeadServerIsLeftAlone: of two servers one stands still. Its breaker
// opens; keys of the other are answered by it all the time.
func TestLaw9DeadServerIsLeftAlone(t *testing.T) {
	s := newTwoServers(t)
	var events eventLog
	c := newCache(t, s.store, &cachefill.Options[int]{
		TTL: time.Hour, Early: -1, StoreBudget: 2 * time.Second, OnEvent: events.add,
	})
	dead, alive := s.fill(t, c)
	load := func(context.Context) (int, error) { return 2, nil }
	answers := func(keys []string, value int, outcome cachefill.Outcome) {
		t.Helper()
		for _, key := range keys {
			r, err := c.Fetch(t.Context(), key, load)
			if err != nil || r.Value != value || r.Outcome != outcome {
				t.Errorf("Fetch of %s = %+v, %v, want %d, %v", key, r, err, value, outcome)
			}
		}
	}
	answers(append(dead, alive...), 1, cachefill.Fresh)

	s.first.Pause()
	defer s.first.Continue()
	var wg sync.WaitGroup
	for _, key := range dead {
		wg.Go(func() { answers([]string{key}, 2, cachefill.Degraded) })
	}
	until(t, "the breaker opens", func() bool {
		answers(alive, 1, cachefill.Fresh)
		return len(events.of(cachefill.StoreBreaker)) > 0
	})
	wg.Wait()
	answers(dead, 2, cachefill.Degraded)
	for range 5 {
		answers(alive, 1, cachefill.Fresh)
	}
	for _, e := range append(events.of(cachefill.StoreBreaker), events.of(cachefill.StoreFailed)...) {
		if s.store.Shard("fill:"+e.Key) != s.first.Addr {
			t.Errorf("the living server was held to be dead: %+v", e)
		}
	}

	s.first.Continue()
	until(t, "the server that goes on is asked again", func() bool {
		r, err := c.Fetch(t.Context(), dead[0], load)
		return err == nil && r.Outcome == cachefill.Fresh
	})
}
