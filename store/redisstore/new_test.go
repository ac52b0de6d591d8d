package redisstore_test

import (
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

// TestNewNamesWhatIsWrong: what cannot work is refused when the store is made,
// by the name of the option, without asking a server.
func TestNewNamesWhatIsWrong(t *testing.T) {
	cluster := func(o redis.ClusterOptions) redis.UniversalClient {
		o.Addrs = []string{"127.0.0.1:1"}
		return closing(t, redis.NewClusterClient(&o))
	}
	client := closing(t, redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}))
	for want, open := range map[string]func() (*redisstore.Store, error){
		"the client is nil":  func() (*redisstore.Store, error) { return redisstore.New(nil, nil) },
		"the client is nil ": func() (*redisstore.Store, error) { return redisstore.New((*redis.Client)(nil), nil) },
		"ClusterOptions.ReadOnly": func() (*redisstore.Store, error) {
			return redisstore.New(cluster(redis.ClusterOptions{ReadOnly: true}), nil)
		},
		"ClusterOptions.RouteByLatency": func() (*redisstore.Store, error) {
			return redisstore.New(cluster(redis.ClusterOptions{RouteByLatency: true}), nil)
		},
		"ClusterOptions.RouteRandomly": func() (*redisstore.Store, error) {
			return redisstore.New(cluster(redis.ClusterOptions{RouteRandomly: true}), nil)
		},
		"Options.ClientSideCache": func() (*redisstore.Store, error) {
			o := &redis.Options{Addr: "127.0.0.1:1", ClientSideCacheConfig: &redis.ClientSideCacheConfig{}}
			return redisstore.New(closing(t, redis.NewClient(o)), nil)
		},
		"Options.Namespace has": func() (*redisstore.Store, error) {
			return redisstore.New(client, &redisstore.Options{Namespace: "a{b}"})
		},
		"Options.Namespace is": func() (*redisstore.Store, error) {
			return redisstore.New(client, &redisstore.Options{Namespace: strings.Repeat("n", 65)})
		},
		"Options.MaxValue is -1": func() (*redisstore.Store, error) { return redisstore.New(client, &redisstore.Options{MaxValue: -1}) },
	} {
		s, err := open()
		if err == nil || s != nil {
			t.Errorf("%s: New returned %v, %v", want, s, err)
			continue
		}
		says(t, err, strings.TrimSpace(want))
	}
}

// TestBadRequests: what no server needs to see is refused by name.
func TestBadRequests(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, closing(t, redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})), nil)
	l := store.Lease{Key: "key", Token: store.NewToken(), Grant: 1}
	for name, err := range map[string]error{
		"fill":      s.Fill(ctx, l, nil, 0),
		"put":       s.Put(ctx, "key", store.NewToken(), nil, -1),
		"put token": s.Put(ctx, "key", store.Token{}, nil, long),
		"renew":     second(s.Renew(ctx, l, 0)),
		"claim":     second(s.Claim(ctx, store.Request{Key: "key", TTL: long})),
		"acquire":   second(s.Acquire(ctx, store.Request{Key: "key", Token: store.NewToken()})),
	} {
		if err == nil || strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, errs := s.RenewAll(ctx, []store.Lease{l}, 0)
	if errs[0] == nil || strings.Contains(errs[0].Error(), "refused") {
		t.Errorf("RenewAll: %v", errs[0])
	}
}

func second[T any](_ T, err error) error { return err }

// TestLaw13FencesAreRefused: a fence is given only where the server, asked by
// New, could keep it.
func TestLaw13FencesAreRefused(t *testing.T) {
	ctx := context.Background()
	fences := &redisstore.Options{Fences: true}
	refuse := func(rdb redis.UniversalClient) {
		t.Helper()
		_, err := redisstore.New(rdb, fences)
		wantErr(t, err, errors.ErrUnsupported)
	}
	refuse(closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})))
	refuse(closing(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})))
	refuse(closing(t, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})))
	refuse(single(t, servertest.Redis(t, "--maxmemory-policy", "volatile-lru").Addr))

	server := servertest.Redis(t)
	rdb := single(t, server.Addr)
	_, err := redisstore.New(rdb, fences)
	ok(t, err)
	host, port, _ := strings.Cut(server.Addr, ":")
	replica := servertest.Redis(t, "--replicaof", host, port)
	eventually(t, "the replica is connected", func() bool {
		return strings.Contains(rdb.Info(ctx, "replication").Val(), "connected_slaves:1")
	})
	refuse(rdb)
	refuse(single(t, replica.Addr))

	server.Pause()
	defer server.Continue()
	asked := time.Now()
	_, err = redisstore.New(single(t, server.Addr), fences)
	if err == nil || time.Since(asked) > 5*time.Second {
		t.Errorf("a server that does not answer: error %v after %v", err, time.Since(asked))
	}

	s := newStore(t, rdb, nil)
	req := request("key")
	req.Fence = true
	_, err = s.Acquire(ctx, req)
	wantErr(t, err, errors.ErrUnsupported)
	_, err = s.Enqueue(ctx, req)
	wantErr(t, err, errors.ErrUnsupported)
}

// TestFenceOverClockJump: a fence grows even if the server's clock went back,
// over every way in which a lease changes hands.
func TestFenceOverClockJump(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, &redisstore.Options{Fences: true})
	if f := s.Facts(); !f.Fences || f.Durable {
		t.Errorf("the facts are %+v", f)
	}
	acquire := func() store.Lease {
		t.Helper()
		req := request("job")
		req.Fence = true
		l, err := s.Acquire(ctx, req)
		ok(t, err)
		if l.Fence == 0 {
			t.Fatal("no fence")
		}
		return l
	}
	l := acquire()
	const future = 5_000_000_000_000_000 // the clock was there once
	ok(t, s.Release(ctx, l))
	ok(t, rdb.Set(ctx, redisstore.Names(s, "job")[5], future, 0).Err())
	l = acquire()
	if l.Fence != future+1 {
		t.Errorf("after fence %d came %d", future, l.Fence)
	}
	events := watch(t, s, "job")
	waiter := request("job")
	waiter.Fence = true
	_, err := s.Enqueue(ctx, waiter)
	wantErr(t, err, store.ErrHeld)
	ok(t, s.Release(ctx, l))
	next := nextEvent(t, events, carriesLease).Lease
	if next.Fence != l.Fence+1 {
		t.Errorf("after fence %d came %d out of the queue", l.Fence, next.Fence)
	}
}

// TestDurable: a server that syncs every write is told from others.
func TestDurable(t *testing.T) {
	dir := t.TempDir()
	server := servertest.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--dir", dir)
	s := newStore(t, single(t, server.Addr), &redisstore.Options{Fences: true})
	if f := s.Facts(); !f.Fences || !f.Durable {
		t.Errorf("the facts are %+v", f)
	}
	l, err := s.Acquire(context.Background(), request("job"))
	ok(t, err)
	server.Kill()
	ok(t, server.Restart(context.Background()))
	_, err = s.Renew(context.Background(), l, long)
	ok(t, err)
}

// TestNamespaces: two namespaces on one server share nothing, and every key
// lies in its own.
func TestNamespaces(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	one := newStore(t, rdb, &redisstore.Options{Namespace: "one"})
	two := newStore(t, rdb, &redisstore.Options{Namespace: "two"})
	ok(t, one.Put(ctx, "key", store.NewToken(), []byte("1"), long))
	_, err := two.Get(ctx, "key")
	wantErr(t, err, store.ErrMiss)
	claimed(t, two, "key")
	_, err = one.Acquire(ctx, request("key"))
	ok(t, err)
	keys, err := rdb.Keys(ctx, "*").Result()
	ok(t, err)
	for _, key := range keys {
		if !strings.HasPrefix(key, "one:") && !strings.HasPrefix(key, "two:") {
			t.Errorf("the key %q lies outside", key)
		}
	}
}

// TestKeysAreForgotten: nothing stays for ever, fences longest.
func TestKeysAreForgotten(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, &redisstore.Options{Fences: true})
	watch(t, s, "key")
	req := request("key")
	req.Fence = true
	_, err := s.Acquire(ctx, req)
	ok(t, err)
	queued(t, s, "key")
	ok(t, s.Put(ctx, "other", store.NewToken(), nil, long))
	keys, err := rdb.Keys(ctx, "*").Result()
	ok(t, err)
	for _, key := range keys {
		if ttl := rdb.PTTL(ctx, key).Val(); ttl <= 0 {
			t.Errorf("%q stays for ever", key)
		}
	}
	if len(keys) != 6 { // l, w, q, p, f and the entry
		t.Errorf("keys: %q", keys)
	}
}
