package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/redisstore"
)

// TestSentinelFailover: the promoted replica takes over entries and leases as
// far as it had them, and wake-ups come from it.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers := servertest.RedisSentinel(t)
	dial := func() *redisstore.Store {
		s := newStore(t, closing(t, redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: servers.Name, SentinelAddrs: []string{servers.Sentinel.Addr}, DialerRetries: 1,
			ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
		})), nil)
		redisstore.SetPulse(s, 100*time.Millisecond, 500*time.Millisecond)
		return s
	}
	leader, waiter := dial(), dial()
	events := watch(t, waiter, "before")
	ok(t, leader.Fill(ctx, claimed(t, leader, "before"), []byte("value"), long))
	replica := single(t, servers.Replica.Addr)
	eventually(t, "the replica has the entry", func() bool {
		return replica.Exists(ctx, redisstore.Names(leader, "before")[0]).Val() == 1
	})

	servers.Master.Kill()
	eventually(t, "the new master is asked", func() bool {
		e, err := leader.Get(ctx, "before")
		return err == nil && string(e.Value) == "value"
	})
	nextEvent(t, events, anyEvent) // look again
	wakes(t, leader, waiter, "after")
}

// TestClusterNodeRestart: the node that a process is subscribed at goes and
// comes back, and so does the subscription. The inbox has a slot of its own.
func TestClusterNodeRestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers := servertest.RedisCluster(t)
	rdb := closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: servers.Addrs(), DialerRetries: 1}))
	s := newStore(t, rdb, nil)
	redisstore.SetPulse(s, 100*time.Millisecond, 500*time.Millisecond)
	events := watch(t, s, "key")
	node, err := rdb.MasterForKey(ctx, redisstore.Inbox(s))
	ok(t, err)
	for _, n := range servers.Nodes {
		if n.Addr == node.Options().Addr {
			n.Kill()
			refused(t, s)
			ok(t, n.Restart(ctx))
		}
	}
	nextEvent(t, events, anyEvent) // look again
	wakes(t, s, s, "key")
}
