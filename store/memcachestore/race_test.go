package memcachestore

import (
	"os"
	"testing"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

// These tests replay the numbered events in the comments of the code: what
// another client does, or what the network delays, between two commands.

func TestLaw1LookAfterRefreshLease(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	a, _ := newStore(t, server.Addr)
	b, wire := newStore(t, server.Addr)
	v1 := fill(t, a, "k", "one")

	var v2 store.Token
	wire.before("add herdgate:l:k", func() {
		l := claim(t, a, refresh("k", v1), store.Granted).Lease
		is(t, "Fill", a.Fill(t.Context(), l, []byte("two"), long), nil)
		v2 = l.Token
	})
	got := claim(t, b, refresh("k", v1), store.Found).Entry
	if got.Version != v2 || string(got.Value) != "two" {
		t.Errorf("found %q, want the entry that arrived meanwhile", got.Value)
	}

	// What B's claim left behind is in nobody's way.
	claim(t, a, refresh("k", v2), store.Granted)
}

func TestLaw1ExpireDuringRefreshClaim(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	a, _ := newStore(t, server.Addr)
	b, wire := newStore(t, server.Addr)
	v1 := fill(t, a, "k", "one")

	wire.before("add herdgate:l:k", func() { is(t, "Expire", a.Expire(t.Context(), "k"), nil) })
	l := claim(t, b, refresh("k", v1), store.Granted).Lease
	claim(t, a, refresh("k", v1), store.Held)
	is(t, "Fill", b.Fill(t.Context(), l, []byte("two"), long), nil)
	if entry(t, a, "k", "two").Stale {
		t.Error("the refreshed entry is stale")
	}
}

func TestLaw2DelayedAdd(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"Claim", "Acquire"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			server := servertest.Memcached(t)
			a, wire := newStore(t, server.Addr)
			other, _ := newStore(t, server.Addr)
			ask := func(r store.Request) (store.Lease, error) {
				if role == "Acquire" {
					return a.Acquire(t.Context(), r)
				}
				answer, err := a.Claim(t.Context(), r)
				return answer.Lease, err
			}

			deliver := wire.hold(t, "add herdgate:v:k")
			r := request("k")
			_, err := ask(r)
			is(t, "the first claim", err, os.ErrDeadlineExceeded)
			l, err := ask(r)
			is(t, "the second claim", err, nil)
			is(t, "Delete", other.Delete(t.Context(), "k"), nil)
			if reply := deliver(); reply != "STORED" {
				t.Fatalf("the delayed add was answered %q", reply)
			}
			lost(t, a, l)
			entry(t, other, "k", "")
		})
	}
}

func TestLaw2DeleteEndsRefresh(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	r, _ := newStore(t, server.Addr)
	d, _ := newStore(t, server.Addr)
	v1 := fill(t, r, "k", "one")
	l := claim(t, r, refresh("k", v1), store.Granted).Lease

	is(t, "Delete", d.Delete(t.Context(), "k"), nil)
	lost(t, r, l)
	entry(t, d, "k", "")

	v2 := fill(t, d, "k", "two")
	lost(t, r, l)
	claim(t, d, refresh("k", v2), store.Granted)
	entry(t, d, "k", "two")
}

func TestLaw2DeleteDuringFill(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	a, wire := newStore(t, server.Addr)
	d, _ := newStore(t, server.Addr)

	cold := claim(t, a, request("cold"), store.Granted).Lease
	warm := claim(t, a, refresh("warm", fill(t, a, "warm", "one")), store.Granted).Lease
	for _, l := range []store.Lease{cold, warm} {
		wire.before("cas herdgate:v:", func() { is(t, "Delete", d.Delete(t.Context(), l.Key), nil) })
		is(t, "Fill", a.Fill(t.Context(), l, []byte("old"), long), store.ErrLost)
		entry(t, d, l.Key, "")
	}
}

func TestLaw2ExpireEndsRefresh(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	r, wire := newStore(t, server.Addr)
	e, _ := newStore(t, server.Addr)
	v1 := fill(t, r, "k", "one")

	// Twice, since the second time the entry is stale already.
	for range 2 {
		l := claim(t, r, refresh("k", v1), store.Granted).Lease
		claim(t, e, refresh("k", v1), store.Held)
		is(t, "Expire", e.Expire(t.Context(), "k"), nil)
		lost(t, r, l)
		if got := entry(t, e, "k", "one"); !got.Stale || got.Version != v1 {
			t.Errorf("after Expire: %+v, want version %v, stale", got, v1)
		}
	}

	// In the middle of a fill.
	l := claim(t, r, refresh("k", v1), store.Granted).Lease
	wire.before("cas herdgate:v:k", func() { is(t, "Expire", e.Expire(t.Context(), "k"), nil) })
	is(t, "Fill", r.Fill(t.Context(), l, []byte("old"), long), store.ErrLost)
	entry(t, e, "k", "one")
}

func TestLaw2ExpireEndsColdLease(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	l := claim(t, s, request("k"), store.Granted).Lease
	is(t, "Expire", s.Expire(t.Context(), "k"), nil)
	lost(t, s, l)
	is(t, "Expire of nothing", s.Expire(t.Context(), "nothing"), nil)
}

func TestLaw2EvictedEntryEndsRefresh(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	l := claim(t, s, refresh("k", fill(t, s, "k", "one")), store.Granted).Lease
	raw(t, server.Addr, "delete herdgate:v:k\r\n") // as eviction would
	lost(t, s, l)
	fill(t, s, "k", "two")
}

func TestLaw2TakeoverAfterEvictedLease(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	a, _ := newStore(t, server.Addr)
	b, _ := newStore(t, server.Addr)
	v1 := fill(t, a, "warm", "one")
	for _, r := range []store.Request{request("cold"), refresh("warm", v1)} {
		old := claim(t, a, r, store.Granted).Lease
		raw(t, server.Addr, "delete herdgate:v:cold\r\n")
		raw(t, server.Addr, "delete herdgate:l:warm\r\n")
		r.Token = store.NewToken()
		fresh := claim(t, b, r, store.Granted).Lease
		lost(t, a, old)
		is(t, "the new holder's Fill", b.Fill(t.Context(), fresh, []byte("two"), long), nil)
		entry(t, a, r.Key, "two")
	}
}

func TestLaw3DelayedPut(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	p, wire := newStore(t, server.Addr)
	d, _ := newStore(t, server.Addr)
	fill(t, d, "there", "one")
	for _, key := range []string{"absent", "there"} {
		deliver := wire.hold(t, "cas herdgate:v:"+key)
		err := p.Put(t.Context(), key, store.NewToken(), []byte("old"), long)
		is(t, "Put", err, os.ErrDeadlineExceeded)
		is(t, "Delete", d.Delete(t.Context(), key), nil)
		if reply := deliver(); reply != "NOT_FOUND" {
			t.Errorf("the delayed cas of %q was answered %q", key, reply)
		}
		entry(t, d, key, "")
	}
}

func TestLaw2PutEndsLeases(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	cold := claim(t, s, request("cold"), store.Granted).Lease
	warm := claim(t, s, refresh("warm", fill(t, s, "warm", "one")), store.Granted).Lease
	for _, l := range []store.Lease{cold, warm} {
		version := store.NewToken()
		is(t, "Put", s.Put(t.Context(), l.Key, version, []byte("put"), long), nil)
		lost(t, s, l)
		if e := entry(t, s, l.Key, "put"); e.Version != version || e.Stale {
			t.Errorf("after Put: %+v", e)
		}
	}
}

func TestLaw11LostReply(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	other, _ := newStore(t, server.Addr)
	v1 := fill(t, s, "warm", "one")
	for item, r := range map[string]store.Request{"v:cold": request("cold"), "l:warm": refresh("warm", v1)} {
		wire.loseReply("add herdgate:" + item)
		_, err := s.Claim(t.Context(), r)
		is(t, "Claim", err, os.ErrDeadlineExceeded)
		rival := r
		rival.Token = store.NewToken()
		holder := claim(t, other, rival, store.Held).Holder

		r.Repeated = true
		l := claim(t, s, r, store.Granted).Lease
		if l.Grant != holder.Grant {
			t.Errorf("%s: the repeated claim made another grant", item)
		}

		wire.loseReply("cas herdgate:" + item)
		_, err = s.Renew(t.Context(), l, long)
		is(t, "Renew", err, os.ErrDeadlineExceeded)
		l, err = s.Renew(t.Context(), l, long)
		is(t, "Renew again", err, nil)

		wire.loseReply("cas herdgate:v:" + r.Key)
		is(t, "Fill", s.Fill(t.Context(), l, []byte("two"), long), os.ErrDeadlineExceeded)
		is(t, "Fill again", s.Fill(t.Context(), l, []byte("two"), long), nil)
		entry(t, other, r.Key, "two")

		is(t, "Delete", other.Delete(t.Context(), r.Key), nil)
		is(t, "Fill after Delete", s.Fill(t.Context(), l, []byte("two"), long), store.ErrLost)
	}
}

func TestLaw11SameTokenSameGrant(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	r := request("acquired")
	first, err := s.Acquire(t.Context(), r)
	is(t, "Acquire", err, nil)
	second, err := s.Acquire(t.Context(), r)
	is(t, "Acquire again", err, nil)
	if first.Grant != second.Grant {
		t.Errorf("grants %d and %d, want one", first.Grant, second.Grant)
	}
	is(t, "Release", s.Release(t.Context(), second), nil)
	third, err := s.Acquire(t.Context(), r)
	is(t, "Acquire after Release", err, nil)
	if third.Grant == first.Grant {
		t.Error("a new lease has the grant of an earlier one")
	}
}
