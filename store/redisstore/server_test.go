package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// TestScriptFlush: a server that has forgotten the scripts is taught them
// again, in single calls and in pipelines.
func TestScriptFlush(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	rdb := single(t, server.Addr)
	s := newStore(t, rdb, nil)
	var leases []store.Lease
	for _, key := range []string{"a", "b", "c"} {
		ok(t, rdb.ScriptFlush(ctx).Err())
		leases = append(leases, claimed(t, s, key))
	}
	ok(t, rdb.ScriptFlush(ctx).Err())
	renewed, errs := s.RenewAll(ctx, leases, long)
	ok(t, errors.Join(errs...))
	for i, l := range renewed {
		if l.Grant != leases[i].Grant || !l.Expires.After(leases[i].Expires) {
			t.Errorf("%+v was renewed as %+v", leases[i], l)
		}
	}
	ok(t, rdb.ScriptFlush(ctx).Err())
	ok(t, errors.Join(s.DeleteAll(ctx, []string{"a", "b", "c"})...))
	_, err := s.Renew(ctx, leases[0], long)
	wantErr(t, err, store.ErrLost)
}

// TestRestartEmpty: a server that comes back empty has lost leases and
// entries, and works. Who waits is told to look again.
func TestRestartEmpty(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	s := newStore(t, single(t, server.Addr), nil)
	redisstore.SetPulse(s, 100*time.Millisecond, time.Second)
	l := claimed(t, s, "key")
	events := watch(t, s, "key")
	server.Kill()
	if _, err := s.Get(ctx, "key"); err == nil || errors.Is(err, store.ErrMiss) {
		t.Errorf("a dead server answered: %v", err)
	}
	ok(t, server.Restart(ctx))
	nextEvent(t, events, anyEvent)
	wantErr(t, s.Fill(ctx, l, []byte("old"), long), store.ErrLost)
	_, err := s.Renew(ctx, l, long)
	wantErr(t, err, store.ErrLost)
	ok(t, s.Fill(ctx, claimed(t, s, "key"), []byte("new"), long))
	e, err := s.Get(ctx, "key")
	ok(t, err)
	if string(e.Value) != "new" {
		t.Errorf("got %q", e.Value)
	}
}

// TestOutOfMemory: a server without eviction refuses fills by name, and yields
// and deletes end leases all the same.
func TestOutOfMemory(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	rdb := single(t, server.Addr)
	s, waiter := newStore(t, rdb, nil), newStore(t, single(t, server.Addr), nil)
	ok(t, s.Put(ctx, "old", store.NewToken(), []byte("old"), long))
	loading, failing, deleted := claimed(t, s, "loading"), claimed(t, s, "failing"), claimed(t, s, "deleted")
	job, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	turn := watch(t, waiter, "job")
	next := queued(t, waiter, "job")
	events := watch(t, waiter, "failing")
	_, err = waiter.Claim(ctx, request("failing"))
	ok(t, err)
	ok(t, rdb.ConfigSet(ctx, "maxmemory", "1").Err())

	err = s.Fill(ctx, loading, []byte("value"), long)
	if err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Fatalf("the fill was answered %v", err)
	}
	if _, err := s.Renew(ctx, loading, long); err != nil {
		t.Errorf("the refused fill has cost the lease: %v", err)
	}
	if _, err := s.Claim(ctx, request("new")); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("a new claim was answered %v", err)
	}
	a, err := waiter.Claim(ctx, request("failing"))
	if err != nil || a.State != store.Held {
		t.Errorf("a claim of a held key was answered %v, error %v", a.State, err)
	}
	ok(t, s.Yield(ctx, failing, store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long}))
	if e := nextEvent(t, events, namesGrant); string(e.Failure.Data) != "boom" {
		t.Errorf("the waiter was told %+v", e)
	}
	ok(t, s.Delete(ctx, "deleted"))
	wantErr(t, s.Release(ctx, deleted), store.ErrLost)
	ok(t, s.Release(ctx, job))
	if e := nextEvent(t, turn, carriesLease); e.Lease.Token != next.Token {
		t.Errorf("the lease was handed to %v", e.Lease.Token)
	}
	ok(t, s.Expire(ctx, "old"))
	if e, err := s.Get(ctx, "old"); err == nil && !e.Stale {
		t.Error("the expired entry is fresh")
	}

	ok(t, rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	claimed(t, s, "failing") // the failure could not be kept, the lease has ended
	ok(t, s.Fill(ctx, loading, []byte("value"), long))
}

// TestEviction: what an evicting server drops is a miss or a lost lease, and
// the key is loaded again.
func TestEviction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servertest.Redis(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
	s := newStore(t, single(t, server.Addr), nil)
	value := bytes.Repeat([]byte("v"), 100<<10)
	misses := 0
	for round := range 3 {
		for i := range 40 {
			key := string(rune('a' + i))
			_, err := s.Get(ctx, key)
			if err == nil {
				continue
			}
			wantErr(t, err, store.ErrMiss)
			misses++
			if err := s.Fill(ctx, claimed(t, s, key), value, long); err != nil && !errors.Is(err, store.ErrLost) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	if misses <= 40 {
		t.Errorf("%d misses: nothing was evicted", misses)
	}
}

// TestLaw11LostReply: go-redis repeats what it got no reply to. Nothing of it
// is lost, nothing granted twice.
func TestLaw11LostReply(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	proxy := servertest.NewProxy(t, server.Addr)
	rdb := closing(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	s, other := newStore(t, rdb, nil), newStore(t, single(t, server.Addr), nil)
	teach(t, s)

	proxy.LoseReply()
	l := claimed(t, s, "key")
	a, err := other.Claim(ctx, request("key"))
	ok(t, err)
	if a.State != store.Held || a.Holder.Grant != l.Grant {
		t.Errorf("the claim was granted twice: %+v, then %+v", l, a)
	}
	proxy.LoseReply()
	ok(t, s.Fill(ctx, l, []byte("value"), long))
	e, err := other.Get(ctx, "key")
	ok(t, err)
	if e.Version != l.Token {
		t.Errorf("filled as %v", e.Version)
	}
	proxy.LoseReply()
	lease, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	var held *store.HeldError
	if _, err = other.Acquire(ctx, request("job")); !errors.As(err, &held) || held.Holder.Grant != lease.Grant {
		t.Errorf("grant %d, then %v", lease.Grant, err)
	}
	proxy.LoseReply()
	ok(t, s.Delete(ctx, "key"))
	_, err = other.Get(ctx, "key")
	wantErr(t, err, store.ErrMiss)
}

// TestTooLarge: a value over the server's own limit is ErrTooLarge, though the
// server only hangs up, and the lease can still be yielded.
func TestTooLarge(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t, "--proto-max-bulk-len", "1mb")
	s := newStore(t, single(t, server.Addr), nil)
	l := claimed(t, s, "key")
	value := make([]byte, 8<<20)
	wantErr(t, s.Fill(ctx, l, value, long), store.ErrTooLarge)
	wantErr(t, s.Put(ctx, "key", store.NewToken(), value, long), store.ErrTooLarge)
	ok(t, s.Yield(ctx, l, store.Failure{}))

	own := newStore(t, single(t, server.Addr), &redisstore.Options{MaxValue: 10})
	l = claimed(t, own, "key")
	wantErr(t, own.Fill(ctx, l, make([]byte, 11), long), store.ErrTooLarge)
	ok(t, own.Fill(ctx, l, make([]byte, 10), long))
}

// TestLaw8ExpiresFromSending: a lease ends for its holder no later than its
// time to live after the request was sent, however slow the reply is.
func TestLaw8ExpiresFromSending(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servertest.Redis(t)
	s := newStore(t, single(t, server.Addr), nil)
	teach(t, s)
	held := claimed(t, s, "held")
	for _, ask := range []func() (store.Lease, error){
		func() (store.Lease, error) { return s.Acquire(ctx, request("a")) },
		func() (store.Lease, error) { return s.Enqueue(ctx, request("b")) },
		func() (store.Lease, error) { a, err := s.Claim(ctx, request("c")); return a.Lease, err },
		func() (store.Lease, error) { return s.Renew(ctx, held, long) },
		func() (store.Lease, error) {
			ls, errs := s.RenewAll(ctx, []store.Lease{held}, long)
			return ls[0], errs[0]
		},
	} {
		server.Pause()
		go func() {
			time.Sleep(800 * time.Millisecond)
			server.Continue()
		}()
		sent := time.Now()
		l, err := ask()
		ok(t, err)
		if late := l.Expires.Sub(sent.Add(long)); late > 500*time.Millisecond {
			t.Errorf("the lease ends %v after its time", late)
		}
	}
}

// TestClock: the store's time is the server's, seen from here.
func TestClock(t *testing.T) {
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	if d := time.Since(s.Now()).Abs(); d > 10*time.Second {
		t.Errorf("before the first reply the clock is off by %v", d)
	}
	claimed(t, s, "key")
	if d := time.Since(s.Now()).Abs(); d > 10*time.Second {
		t.Errorf("the clock of a server on this machine is off by %v", d)
	}
}

// TestExpireKeepsTimeToLive: a stale entry is forgotten when it would have been.
func TestExpireKeepsTimeToLive(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, nil)
	ok(t, s.Put(ctx, "key", store.NewToken(), []byte("value"), long))
	ok(t, s.Expire(ctx, "key"))
	e, err := s.Get(ctx, "key")
	ok(t, err)
	if left := rdb.PTTL(ctx, redisstore.Names(s, "key")[0]).Val(); !e.Stale || left <= 0 || left > long {
		t.Errorf("the entry is %+v and stays for %v", e, left)
	}
}
