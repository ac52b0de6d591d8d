package redisstore_test

import (
	"context"
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
	t.Parallel()
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
	t.Parallel()
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
