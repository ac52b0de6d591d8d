package memcachestore

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

// TestRestart empties the server under a pool full of connections to the old
// one. Nothing of that is an error; everything means "load again".
func TestRestart(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	fillPool(t, s)
	v1 := fill(t, s, "entry", "one")
	cold := claim(t, s, request("cold"), store.Granted).Lease
	warm := claim(t, s, refresh("entry", v1), store.Granted).Lease

	server.Kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	entry(t, s, "entry", "")
	lost(t, s, cold)
	lost(t, s, warm)
	fill(t, s, "entry", "two")
	fill(t, s, "cold", "two")
	entry(t, s, "entry", "two")
}

// TestBrokenConnections breaks all pooled connections before each operation.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	restart := func() {
		fillPool(t, s)
		server.Kill()
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	l := claim(t, s, request("k"), store.Granted).Lease
	restart()
	claim(t, s, refresh("k", l.Token), store.Granted)
	restart()
	is(t, "Put", s.Put(t.Context(), "k", store.NewToken(), nil, long), nil)
	restart()
	is(t, "Delete", s.Delete(t.Context(), "k"), nil)
	restart()
	is(t, "Expire", s.Expire(t.Context(), "k"), nil)
	restart()
	_, err := s.Acquire(t.Context(), request("k"))
	is(t, "Acquire", err, nil)
}

// fillPool leaves several idle connections in the client's pool.
func fillPool(t *testing.T, s *Store) {
	t.Helper()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() { _, _ = s.Get(t.Context(), "nothing") })
	}
	wg.Wait()
}

func TestServerDown(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	l := claim(t, s, request("k"), store.Granted).Lease
	server.Kill()
	for what, err := range everyError(t, s, l) {
		is(t, what, err, syscall.ECONNREFUSED)
		if !strings.HasPrefix(err.Error(), "memcachestore: ") {
			t.Errorf("%s: the error %q does not say where it comes from", what, err)
		}
	}
}

// TestServerPaused stops the server by SIGSTOP: the client's timeout ends each
// call.
func TestServerPaused(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	l := claim(t, s, request("k"), store.Granted).Lease
	s.client.Timeout = 50 * time.Millisecond
	server.Pause()
	timedOut := func(err error) bool {
		var reply net.Error
		var connect *memcache.ConnectTimeoutError
		return errors.As(err, &reply) && reply.Timeout() || errors.As(err, &connect)
	}
	await(t, func() bool { // the signal takes its time
		_, err := s.Get(t.Context(), "k")
		return timedOut(err)
	})
	for what, err := range everyError(t, s, l) {
		if !timedOut(err) {
			t.Errorf("%s returned %v, want a timeout", what, err)
		}
	}
	server.Continue()
	s.client.Timeout = 5 * time.Second

	// What was sent meanwhile takes effect now, in any order.
	await(t, func() bool {
		is(t, "Delete", s.Delete(t.Context(), "k"), nil)
		a, err := s.Claim(t.Context(), request("k"))
		is(t, "Claim", err, nil)
		return a.State == store.Granted
	})
}

// everyError calls every method that can fail by the server.
func everyError(t *testing.T, s *Store, l store.Lease) map[string]error {
	t.Helper()
	ctx, errs := t.Context(), make(map[string]error)
	_, errs["Get"] = s.Get(ctx, l.Key)
	_, errs["Claim"] = s.Claim(ctx, request(l.Key))
	_, errs["Claim of a refresh"] = s.Claim(ctx, refresh(l.Key, store.NewToken()))
	_, errs["Acquire"] = s.Acquire(ctx, request(l.Key))
	_, errs["Renew"] = s.Renew(ctx, l, long)
	_, errs["Break"] = s.Break(ctx, l.Key)
	errs["Fill"] = s.Fill(ctx, l, nil, long)
	errs["Yield"] = s.Yield(ctx, l, store.Failure{})
	errs["Release"] = s.Release(ctx, l)
	errs["Put"] = s.Put(ctx, l.Key, store.NewToken(), nil, long)
	errs["Expire"] = s.Expire(ctx, l.Key)
	errs["Delete"] = s.Delete(ctx, l.Key)
	return errs
}

// TestTwoServers spreads keys, so that for some the value item and the lease
// item are on different servers, and one server can die alone.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	servers := []*servertest.Process{servertest.Memcached(t), servertest.Memcached(t)}
	s, _ := newStore(t, servers[0].Addr, servers[1].Addr)
	apart := 0
	for i := range 50 {
		key := fmt.Sprint("k", i)
		v1 := fill(t, s, key, "one")
		claim(t, s, refresh(key, v1), store.Granted)
		if len(raw(t, servers[0].Addr, "get herdgate:v:"+key+"\r\n")) > len("END") != (len(raw(t, servers[0].Addr, "get herdgate:l:"+key+"\r\n")) > len("END")) {
			apart++
		}
		claim(t, s, refresh(key, v1), store.Held)
		is(t, "Expire", s.Expire(t.Context(), key), nil)
		l := claim(t, s, refresh(key, v1), store.Granted).Lease
		is(t, "Fill", s.Fill(t.Context(), l, []byte("two"), long), nil)
		entry(t, s, key, "two")
		is(t, "Delete", s.Delete(t.Context(), key), nil)
		fill(t, s, key, "three")
	}
	if apart == 0 {
		t.Error("all pairs of items were together: the test tests nothing")
	}

	servers[1].Kill()
	alive := 0
	for i := range 50 {
		e, err := s.Get(t.Context(), fmt.Sprint("k", i))
		if err == nil && string(e.Value) == "three" {
			alive++
		} else if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Get returned %v, want a refused connection", err)
		}
	}
	if alive == 0 || alive == 50 {
		t.Errorf("%d of 50 entries survived one of two servers", alive)
	}
}

// TestForeignBytes: what others wrote under our names is a miss, and gives way.
func TestForeignBytes(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	damaged := record{kind: kindEntry, token: store.NewToken(), body: []byte("x")}.encode()
	damaged[4] = '?'
	for i, foreign := range []string{"", "hello", magic, string(damaged), string(damaged[:40])} {
		key := fmt.Sprint("k", i)
		put := func() {
			for _, name := range []string{s.names.value(key), s.names.lease(key)} {
				if err := s.client.Set(&memcache.Item{Key: name, Value: []byte(foreign), Flags: 7}); err != nil {
					t.Fatal(err)
				}
			}
		}
		put()
		entry(t, s, key, "")
		v1 := fill(t, s, key, "one")
		l := claim(t, s, refresh(key, v1), store.Granted).Lease
		is(t, "Fill", s.Fill(t.Context(), l, []byte("two"), long), nil)
		put()
		is(t, "Fill", s.Fill(t.Context(), l, []byte("two"), long), store.ErrLost)
		is(t, "Expire", s.Expire(t.Context(), key), nil)
		_, err := s.Acquire(t.Context(), request(key))
		is(t, "Acquire", err, nil)
		put()
		is(t, "Put", s.Put(t.Context(), key, store.NewToken(), []byte("three"), long), nil)
		entry(t, s, key, "three")
	}
}

// TestLaw1OneGrant lets many clients claim at once, cold and to refresh.
func TestLaw1OneGrant(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	var seen store.Token
	for i := range 50 {
		if i%10 == 9 {
			is(t, "Expire", s.Expire(t.Context(), "k"), nil)
		}
		var granted atomic.Int32
		var lease store.Lease
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				a, err := s.Claim(t.Context(), refresh("k", seen))
				if err != nil {
					t.Error(err)
				}
				if a.State == store.Granted && granted.Add(1) == 1 {
					lease = a.Lease
				}
			})
		}
		wg.Wait()
		if n := granted.Load(); n != 1 {
			t.Fatalf("round %d: %d leases were granted, want 1", i, n)
		}
		is(t, "Fill", s.Fill(t.Context(), lease, nil, long), nil)
		seen = lease.Token
	}
}
