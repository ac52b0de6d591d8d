package servertest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestRedisRestart pins what the other tests rely on: killed is gone, restarted
// is back on the same address and empty.
func TestRedisRestart(t *testing.T) {
	ctx := t.Context()
	server := Redis(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := redisAnswers(ctx, server.Addr); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := c.DBSize(ctx).Result(); n != 0 || err != nil {
		t.Fatalf("restarted server holds %d keys, error %v", n, err)
	}
}

// TestStartTellsWhy: a server that refuses its options is an error that shows
// what it said.
func TestStartTellsWhy(t *testing.T) {
	_, err := StartRedis(context.Background(), t.TempDir(), "--no-such-option", "1")
	if err == nil {
		t.Fatal("started with an option that does not exist")
	}
	t.Log(err)
}

func TestRedisCluster(t *testing.T) {
	ctx := t.Context()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: RedisCluster(t).Addrs()})
	defer c.Close()
	masters := make(map[string]bool)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := c.Set(ctx, key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
		m, err := c.MasterForKey(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		masters[m.Options().Addr] = true
	}
	if len(masters) != 3 {
		t.Fatalf("keys on %d masters, want 3", len(masters))
	}
}

func TestRedisSentinel(t *testing.T) {
	ctx := t.Context()
	s := RedisSentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: []string{s.Sentinel.Addr}})
	defer c.Close()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Master.Kill()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := poll(ctx, func() error { return c.Set(ctx, "k", "w", 0).Err() }); err != nil {
		t.Fatalf("nobody took over: %v", err)
	}
}
