package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// TestLaw9ShardsAreToldApart: on a cluster and on a ring, every server has a
// name of its own, so that one that is dead is not taken for all.
func TestLaw9ShardsAreToldApart(t *testing.T) {
	t.Parallel()
	first, second := servertest.Redis(t), servertest.Redis(t)
	cluster := servertest.RedisCluster(t)
	for name, c := range map[string]struct {
		rdb     redis.UniversalClient
		servers int
	}{
		"single":  {single(t, first.Addr), 1},
		"ring":    {closing(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": first.Addr, "b": second.Addr}})), 2},
		"cluster": {closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})), 3},
	} {
		s := newStore(t, c.rdb, nil)
		_, err := s.Get(context.Background(), "key") // now the layout is known
		wantErr(t, err, store.ErrMiss)
		shards := make(map[string]bool)
		for i := range 100 {
			shards[s.Shard(fmt.Sprint("key", i))] = true
		}
		if len(shards) != c.servers || shards[""] {
			t.Errorf("%s: the shards are %v, want %d", name, shards, c.servers)
		}
	}
}

// TestShardAsksNobody: a cluster that does not answer is not waited for.
func TestShardAsksNobody(t *testing.T) {
	server := servertest.Redis(t)
	server.Pause()
	defer server.Continue()
	s := newStore(t, closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})), &redisstore.Options{})
	asked := time.Now()
	for range 10 {
		s.Shard("key")
	}
	if took := time.Since(asked); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}
