package redisstore_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// quick returns a store behind proxy that notices faults soon.
func quick(t *testing.T, addr string) *redisstore.Store {
	s := newStore(t, closing(t, redis.NewClient(&redis.Options{
		Addr: addr, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
	})), nil)
	redisstore.SetPulse(s, 100*time.Millisecond, 500*time.Millisecond)
	return s
}

// TestHalfOpenSubscriber: a connection that went silent without being closed
// is noticed, replaced, and who waits is told to look again. Wake-ups work
// after that.
func TestHalfOpenSubscriber(t *testing.T) {
	for name, silence := range map[string]func(*servertest.Proxy){
		"nothing passes": (*servertest.Proxy).DropAll,
		"replies lost":   (*servertest.Proxy).DropReplies,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			server := servertest.Redis(t)
			proxy := servertest.NewProxy(t, server.Addr)
			leader, waiter := newStore(t, single(t, server.Addr), nil), quick(t, proxy.Addr)
			events := watch(t, waiter, "key")
			l := claimed(t, leader, "key")
			_, err := waiter.Claim(ctx, request("key"))
			ok(t, err)

			silence(proxy)
			ok(t, leader.Fill(ctx, l, []byte("value"), long)) // nobody hears it
			refused(t, waiter)
			proxy.Pass() // the old connections stay silent
			if e := nextEvent(t, events, anyEvent); e.Grant != 0 {
				t.Fatalf("a silent connection told %+v", e)
			}
			eventually(t, "the waiter finds the value", func() bool {
				_, err := waiter.Get(ctx, "key")
				return err == nil
			})
			wakes(t, leader, waiter, "other")
		})
	}
}

// refused waits until s knows that its subscription is down, and says so.
func refused(t *testing.T, s *redisstore.Store) {
	t.Helper()
	eventually(t, "a watch is refused: nobody would hear anything", func() bool {
		_, stop, err := s.Watch(context.Background(), "other")
		if err == nil {
			stop()
		}
		return err != nil
	})
}

// wakes checks that waiter is told when leader fills key.
func wakes(t *testing.T, leader, waiter *redisstore.Store, key string) {
	t.Helper()
	ctx := context.Background()
	var events <-chan store.Event
	eventually(t, "the subscription is up", func() bool {
		e, stop, err := waiter.Watch(ctx, key)
		if err == nil {
			t.Cleanup(stop)
		}
		events = e
		return err == nil
	})
	var l store.Lease
	eventually(t, "the claim is granted", func() bool {
		a, err := leader.Claim(ctx, request(key))
		l = a.Lease
		return err == nil && a.State == store.Granted
	})
	eventually(t, "the waiter is refused", func() bool {
		a, err := waiter.Claim(ctx, request(key))
		return err == nil && a.State == store.Held
	})
	ok(t, leader.Fill(ctx, l, []byte("value"), long))
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant || string(e.Entry.Value) != "value" {
		t.Errorf("the waiter was told %+v", e)
	}
}

// TestPausedServer: a server that stands still and goes on costs no waiter
// its wake-up.
func TestPausedServer(t *testing.T) {
	server := servertest.Redis(t)
	leader, waiter := quick(t, server.Addr), quick(t, server.Addr)
	events := watch(t, waiter, "key")
	server.Pause()
	defer server.Continue()
	refused(t, waiter)
	server.Continue()
	nextEvent(t, events, anyEvent) // look again
	wakes(t, leader, waiter, "key")
}

// TestWatchDoesNotWaitForTheConnection: while the subscription is down, Watch
// says so at once, though a new connection takes long to fail.
func TestWatchDoesNotWaitForTheConnection(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	const slow = 2 * time.Second
	s := newStore(t, closing(t, redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: slow})), nil)
	redisstore.SetPulse(s, 50*time.Millisecond, 200*time.Millisecond)
	stop, err := s.Announce(ctx, func(store.Change) {})
	ok(t, err)
	defer stop()
	server.Pause()
	defer server.Continue()
	refused(t, s)
	for start := time.Now(); time.Since(start) < 5*slow/2; time.Sleep(50 * time.Millisecond) {
		asked := time.Now()
		_, _, err := s.Watch(ctx, "key")
		if took := time.Since(asked); err == nil || took > slow/2 {
			t.Fatalf("Watch returned %v after %v", err, took)
		}
	}
}

// TestCutSubscriber: a connection that was closed is replaced, and who waits
// is told to look again.
func TestCutSubscriber(t *testing.T) {
	server := servertest.Redis(t)
	proxy := servertest.NewProxy(t, server.Addr)
	leader, waiter := newStore(t, single(t, server.Addr), nil), quick(t, proxy.Addr)
	events := watch(t, waiter, "key")
	for range 3 {
		proxy.Cut()
		nextEvent(t, events, anyEvent)
	}
	wakes(t, leader, waiter, "key")
}

// TestWatchOfDeadServer: a watch that cannot be had is an error, and the
// fallback of package store a nil channel. Neither waits for long.
func TestWatchOfDeadServer(t *testing.T) {
	server := servertest.Redis(t)
	s := quick(t, server.Addr)
	server.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, _, err := s.Watch(ctx, "key"); err == nil {
		t.Error("watching a dead server")
	}
	if events, stop := store.Watch(ctx, s, "key"); events != nil {
		stop()
		t.Error("the fallback has a channel")
	}
	ok(t, ctx.Err())
	ok(t, server.Restart(ctx))
	wakes(t, s, s, "key")
}

// TestHeartbeatOnlyWhileWatched: an idle process costs the server nothing.
func TestHeartbeatOnlyWhileWatched(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	s := quick(t, server.Addr)
	admin := single(t, server.Addr)
	published := func() string {
		info, err := admin.Info(ctx, "commandstats").Result()
		ok(t, err)
		_, after, _ := strings.Cut(info, "cmdstat_publish:calls=")
		calls, _, _ := strings.Cut(after, ",")
		return calls
	}
	_, stop, err := s.Watch(ctx, "key")
	ok(t, err)
	eventually(t, "heartbeats are sent", func() bool { return published() != "" })
	stop()
	eventually(t, "heartbeats have stopped", func() bool {
		before := published()
		time.Sleep(500 * time.Millisecond)
		return published() == before
	})
}

// TestCloseLeavesNothing: no goroutine and no connection of ours survives
// Close, and the client goes on working.
func TestCloseLeavesNothing(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	rdb := single(t, server.Addr)
	ok(t, rdb.Ping(ctx).Err())
	before := runtime.NumGoroutine()
	for range 10 {
		s, err := redisstore.New(rdb, nil)
		ok(t, err)
		redisstore.SetPulse(s, time.Millisecond, time.Second)
		watch(t, s, "key")
		ok(t, s.Close())
		ok(t, s.Close())
		_, _, err = s.Watch(ctx, "key")
		wantErr(t, err, redisstore.ErrClosed)
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "no inbox is left", func() bool {
		channels, err := rdb.PubSubChannels(ctx, "*").Result()
		return err == nil && len(channels) == 0
	})
}

// TestCloseWhileServerIsSilent: Close does not wait for a server for ever.
func TestCloseWhileServerIsSilent(t *testing.T) {
	server := servertest.Redis(t)
	s := quick(t, server.Addr)
	watch(t, s, "key")
	server.Pause()
	defer server.Continue()
	refused(t, s) // a heartbeat is under way
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		ok(t, err)
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
}

// TestSentinelFailover: the promoted replica takes over entries and leases as
// far as it had them, and wake-ups come from it.
func TestSentinelFailover(t *testing.T) {
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

// TestHolderKeepsListening: renewing a lease that is watched keeps its holder
// among those who are told when somebody ends it.
func TestHolderKeepsListening(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s, other := newStore(t, rdb, nil), newStore(t, rdb, nil)
	events := watch(t, s, "job")
	req := request("job")
	req.TTL = 10 * time.Second
	l, err := s.Acquire(ctx, req)
	ok(t, err)
	l, err = s.Renew(ctx, l, long)
	ok(t, err)
	if left := rdb.PTTL(ctx, redisstore.Names(s, "job")[2]).Val(); left < long-patience {
		t.Errorf("the holder is forgotten in %v, the lease ends in %v", left, long)
	}
	_, err = other.Break(ctx, "job")
	ok(t, err)
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant {
		t.Errorf("the holder was told %+v", e)
	}
}

// TestLeaderTellsItsOwnProcess: who waits in the process that loads is told
// without the detour over the server.
func TestLeaderTellsItsOwnProcess(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	events := watch(t, s, "key")
	l := claimed(t, s, "key")
	ok(t, s.Yield(ctx, l, store.Failure{Data: []byte("boom"), CoolDown: time.Millisecond, Memory: long}))
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant || string(e.Failure.Data) != "boom" {
		t.Errorf("the yield was told as %+v", e)
	}
	eventually(t, "the failure has cooled down", func() bool {
		a, err := s.Claim(ctx, request("key"))
		l = a.Lease
		return err == nil && a.State == store.Granted
	})
	ok(t, s.Fill(ctx, l, []byte("value"), long))
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant || string(e.Entry.Value) != "value" {
		t.Errorf("the fill was told as %+v", e)
	}
}

// TestPushCarriesSmallValues: up to 4 KiB travel with the wake-up.
func TestPushCarriesSmallValues(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	leader, waiter := newStore(t, rdb, nil), newStore(t, rdb, nil)
	for size, carried := range map[int]bool{0: true, 4096: true, 4097: false} {
		key := strings.Repeat("k", size+1)
		events := watch(t, waiter, key)
		l := claimed(t, leader, key)
		_, err := waiter.Claim(ctx, request(key))
		ok(t, err)
		ok(t, leader.Fill(ctx, l, make([]byte, size), long))
		e := nextEvent(t, events, namesGrant)
		if got := e.Entry.Version == l.Token && len(e.Entry.Value) == size; got != carried {
			t.Errorf("%d bytes were carried: %v, want %v", size, got, carried)
		}
	}
}
