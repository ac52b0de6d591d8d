package memcachestore

import (
	"testing"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

// TestCommands counts what each step sends. gomemcache sends gets for every
// Get.
func TestCommands(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	type sent = map[string]int

	entry(t, s, "k", "")
	wire.costs(t, "a miss", sent{"gets": 1})
	l := claim(t, s, request("k"), store.Granted).Lease
	wire.costs(t, "a cold claim", sent{"add": 1})

	waiter := request("k")
	claim(t, s, waiter, store.Held)
	wire.costs(t, "a refused claim", sent{"add": 1, "gets": 1})
	waiter.Repeated = true
	claim(t, s, waiter, store.Held)
	wire.costs(t, "a repeated refused claim", sent{"gets": 1})
	entry(t, s, "k", "")
	wire.costs(t, "a poll", sent{"gets": 1})

	l, err := s.Renew(t.Context(), l, long)
	is(t, "Renew", err, nil)
	wire.costs(t, "Renew", sent{"gets": 1, "cas": 1})
	is(t, "Fill", s.Fill(t.Context(), l, []byte("one"), long), nil)
	wire.costs(t, "a cold fill", sent{"gets": 1, "cas": 1})
	entry(t, s, "k", "one")
	wire.costs(t, "a hit", sent{"gets": 1})

	l = claim(t, s, refresh("k", l.Token), store.Granted).Lease
	wire.costs(t, "a claim to refresh", sent{"add": 1, "gets": 1})
	is(t, "Fill", s.Fill(t.Context(), l, []byte("two"), long), nil)
	wire.costs(t, "the fill of a refresh", sent{"gets": 2, "cas": 2})
	claim(t, s, refresh("k", l.Token), store.Granted)
	wire.costs(t, "the next claim to refresh", sent{"add": 1, "gets": 1})
	is(t, "Expire", s.Expire(t.Context(), "k"), nil)
	wire.costs(t, "Expire", sent{"gets": 1, "cas": 1})
	is(t, "Delete", s.Delete(t.Context(), "k"), nil)
	wire.costs(t, "Delete", sent{"delete": 1})

	l, err = s.Acquire(t.Context(), request("lease"))
	is(t, "Acquire", err, nil)
	wire.costs(t, "Acquire", sent{"add": 1})
	waiter = request("lease")
	_, err = s.Acquire(t.Context(), waiter)
	is(t, "Acquire", err, store.ErrHeld)
	wire.costs(t, "a refused Acquire", sent{"add": 1, "gets": 1})
	waiter.Repeated = true
	_, err = s.Acquire(t.Context(), waiter)
	is(t, "Acquire", err, store.ErrHeld)
	wire.costs(t, "a repeated refused Acquire", sent{"gets": 1})
	is(t, "Release", s.Release(t.Context(), l), nil)
	wire.costs(t, "Release", sent{"gets": 1, "cas": 1})
	is(t, "Put", s.Put(t.Context(), "k", store.NewToken(), nil, long), nil)
	wire.costs(t, "Put of a new key", sent{"gets": 2, "add": 1, "cas": 1})
	is(t, "Put", s.Put(t.Context(), "k", store.NewToken(), nil, long), nil)
	wire.costs(t, "Put over an entry", sent{"gets": 1, "cas": 1})
}
