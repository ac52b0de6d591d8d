package memcachestore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

func TestEviction(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t, "-m", "1", "-I", "512k")
	s, _ := newStore(t, server.Addr)
	var leases []store.Lease
	for i := range 100 {
		leases = append(leases, claim(t, s, request(fmt.Sprint("cold", i)), store.Granted).Lease)
	}
	for i := range 2000 {
		fill(t, s, fmt.Sprint("flood", i), strings.Repeat("x", 4000))
	}
	for i := range 20000 { // small ones, of the size of leases
		raw := &memcache.Item{Key: fmt.Sprint("small", i), Value: make([]byte, 90)}
		if err := s.client.Set(raw); err != nil {
			t.Fatal(err)
		}
	}
	evicted := 0
	for _, l := range leases {
		err := s.Fill(t.Context(), l, []byte("late"), long)
		if errors.Is(err, store.ErrLost) {
			evicted++
			fill(t, s, l.Key, "again")
		} else if err != nil {
			t.Fatalf("Fill returned %v", err)
		}
	}
	if evicted == 0 {
		t.Error("the flood evicted no lease: the test tests nothing")
	}
	gone := 0
	for i := range 2000 {
		if _, err := s.Get(t.Context(), fmt.Sprint("flood", i)); errors.Is(err, store.ErrMiss) {
			gone++
		} else if err != nil {
			t.Fatalf("Get returned %v", err)
		}
	}
	if gone == 0 {
		t.Error("the flood evicted no entry: the test tests nothing")
	}
}

// TestLaw7TooLarge: the refused value leaves entry and lease as they are, so
// that the caller can yield.
func TestLaw7TooLarge(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t, "-I", "64k", "-o", "slab_chunk_max=16384")
	s, _ := newStore(t, server.Addr)
	v1 := fill(t, s, "warm", "one")
	large := bytes.Repeat([]byte("x"), 1<<20)
	for _, r := range []store.Request{request("cold"), refresh("warm", v1)} {
		l := claim(t, s, r, store.Granted).Lease
		is(t, "Fill", s.Fill(t.Context(), l, large, long), store.ErrTooLarge)
		r.Token = store.NewToken()
		claim(t, s, r, store.Held)

		// A failure that is too large as well just ends the lease.
		f := store.Failure{Data: large, CoolDown: long, Memory: long}
		is(t, "Yield", s.Yield(t.Context(), l, f), nil)
		lost(t, s, l)
		l = claim(t, s, r, store.Granted).Lease
		f.Data = []byte("too large")
		is(t, "Yield", s.Yield(t.Context(), l, f), nil)
		claim(t, s, r, store.Failed)
	}
	entry(t, s, "warm", "one")

	is(t, "Put", s.Put(t.Context(), "warm", store.NewToken(), large, long), store.ErrTooLarge)
	entry(t, s, "warm", "one")
	is(t, "Put", s.Put(t.Context(), "new", store.NewToken(), large, long), store.ErrTooLarge)
	claim(t, s, request("new"), store.Granted)

	fits := bytes.Repeat([]byte("x"), 60<<10)
	fill(t, s, "fits", string(fits))
	entry(t, s, "fits", string(fits))
}

// TestOutOfMemory fills a server that may not evict.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t, "-m", "1", "-I", "512k", "-M")
	s, _ := newStore(t, server.Addr)
	l := claim(t, s, request("k"), store.Granted).Lease
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = s.client.Set(&memcache.Item{Key: fmt.Sprint(i), Value: make([]byte, 100<<10)})
	}
	if err == nil {
		t.Fatal("the server took everything: the test tests nothing")
	}
	err = s.Fill(t.Context(), l, make([]byte, 100<<10), long)
	if err == nil || errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrLost) {
		t.Fatalf("Fill returned %v, want another error", err)
	}
	f := store.Failure{Data: make([]byte, 100<<10), CoolDown: long, Memory: long}
	is(t, "Yield", s.Yield(t.Context(), l, f), nil)
	claim(t, s, request("k"), store.Granted)
}
