package memcachestore

import (
	"errors"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
)

// long is a time to live that no test outlasts.
const long = time.Minute

// request asks for a lease on key with a token of its own.
func request(key string) store.Request {
	return store.Request{Key: key, Token: store.NewToken(), TTL: long, Note: store.Note{Owner: "test"}}
}

// refresh asks for a lease to refresh version.
func refresh(key string, version store.Token) store.Request {
	r := request(key)
	r.Seen = version
	return r
}

// claim claims and checks the kind of answer.
func claim(t testing.TB, s *Store, r store.Request, want store.State) store.Answer {
	t.Helper()
	a, err := s.Claim(t.Context(), r)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	if a.State != want {
		t.Fatalf("Claim answered %v, want %v", a.State, want)
	}
	return a
}

// fill stores a new entry by a cold claim and returns its version.
func fill(t testing.TB, s *Store, key, value string) store.Token {
	t.Helper()
	l := claim(t, s, request(key), store.Granted).Lease
	is(t, "Fill", s.Fill(t.Context(), l, []byte(value), long), nil)
	return l.Token
}

// is checks an error by errors.Is; nil means none.
func is(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s returned %v, want %v", what, err, want)
	}
}

// lost checks that nothing can be done with a lease any more.
func lost(t *testing.T, s *Store, l store.Lease) {
	t.Helper()
	_, err := s.Renew(t.Context(), l, long)
	is(t, "Renew", err, store.ErrLost)
	is(t, "Yield", s.Yield(t.Context(), l, store.Failure{}), store.ErrLost)
	is(t, "Release", s.Release(t.Context(), l), store.ErrLost)
	is(t, "Fill", s.Fill(t.Context(), l, []byte("late"), long), store.ErrLost)
}

// entry checks the value of an entry, "" for none.
func entry(t testing.TB, s *Store, key, want string) store.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if want == "" {
		is(t, "Get", err, store.ErrMiss)
		return e
	}
	is(t, "Get", err, nil)
	if string(e.Value) != want {
		t.Fatalf("Get returned %q, want %q", e.Value, want)
	}
	return e
}
