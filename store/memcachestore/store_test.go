package memcachestore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

func TestNewNamesWhatIsWrong(t *testing.T) {
	client := memcache.New("127.0.0.1:1")
	for want, f := range map[string]func() (*Store, error){
		"client is nil":     func() (*Store, error) { return New(nil, nil) },
		"Options.Namespace": func() (*Store, error) { return New(client, &Options{Namespace: "a b"}) },
		"at most 64":        func() (*Store, error) { return New(client, &Options{Namespace: strings.Repeat("a", 65)}) },
	} {
		if s, err := f(); err == nil || !strings.Contains(err.Error(), want) || s != nil {
			t.Errorf("New returned %v, %v, want an error with %q", s, err, want)
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	ctx := t.Context()
	l := store.Lease{Key: "k", Token: store.NewToken(), Grant: 2}
	for what, err := range map[string]error{
		"Claim without a token":   second(s.Claim(ctx, store.Request{TTL: long})),
		"Claim for no time":       second(s.Claim(ctx, store.Request{Token: store.NewToken()})),
		"Acquire without a token": second(s.Acquire(ctx, store.Request{TTL: long})),
		"Renew for no time":       second(s.Renew(ctx, l, 0)),
		"Fill for no time":        s.Fill(ctx, l, nil, -time.Second),
		"Put for no time":         s.Put(ctx, "k", store.NewToken(), nil, 0),
		"Put without a version":   s.Put(ctx, "k", store.Token{}, nil, long),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	wire.costs(t, "bad arguments", nil)
}

func second[T any](_ T, err error) error { return err }

func TestLaw13NoFence(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	r := request("k")
	r.Fence = true
	_, err := s.Acquire(t.Context(), r)
	is(t, "Acquire", err, errors.ErrUnsupported)
	wire.costs(t, "asking for a fence", nil)
	if f := s.Facts(); f.Fences || f.Durable || f.MinTTL != 2*time.Second || f.Early != time.Second {
		t.Errorf("facts %+v", f)
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"Get":     second(s.Get(ctx, "k")),
		"Claim":   second(s.Claim(ctx, request("k"))),
		"Acquire": second(s.Acquire(ctx, request("k"))),
		"Delete":  s.Delete(ctx, "k"),
	} {
		is(t, what, err, context.Canceled)
	}
	wire.costs(t, "calls whose context has ended", nil)
}

// TestHolder: who is refused sees the note, from a claim and from a poll.
func TestHolder(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	r := request("k")
	r.Note = store.Note{Owner: "billing", PID: 7, Expect: time.Second}
	l := claim(t, s, r, store.Granted).Lease

	h := claim(t, s, request("k"), store.Held).Holder
	if h.Grant != l.Grant || h.Note != r.Note {
		t.Errorf("a claim sees the holder %+v", h)
	}
	_, err := s.Get(t.Context(), "k")
	var miss *store.MissError
	if !errors.As(err, &miss) || miss.Answer.State != store.Held || miss.Answer.Holder != h {
		t.Errorf("a poll returned %v", err)
	}
	_, err = s.Acquire(t.Context(), request("k"))
	var held *store.HeldError
	if !errors.As(err, &held) || held.Holder != h || held.Key != "k" {
		t.Errorf("Acquire returned %v", err)
	}
}

func TestBreak(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	l := claim(t, s, request("k"), store.Granted).Lease
	h, err := s.Break(t.Context(), "k")
	is(t, "Break", err, nil)
	if h.Grant != l.Grant || h.Note.Owner != "test" {
		t.Errorf("Break returned %+v, want the holder of grant %d", h, l.Grant)
	}
	lost(t, s, l)

	// It leaves what is no lease alone.
	fill(t, s, "entry", "one")
	for _, key := range []string{"k", "entry"} {
		if h, err := s.Break(t.Context(), key); err != nil || h != (store.Holder{}) {
			t.Errorf("Break of no lease returned %+v, %v", h, err)
		}
	}
	entry(t, s, "entry", "one")
}

// TestReleaseAfterTakeover: a late release leaves the next holder alone.
func TestReleaseAfterTakeover(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	other, _ := newStore(t, server.Addr)
	old, err := s.Acquire(t.Context(), request("k"))
	is(t, "Acquire", err, nil)

	var next store.Lease
	wire.before("cas", func() { // between gets and cas of the release
		_, err := other.Break(t.Context(), "k")
		is(t, "Break", err, nil)
		next, err = other.Acquire(t.Context(), request("k"))
		is(t, "Acquire", err, nil)
	})
	is(t, "Release", s.Release(t.Context(), old), store.ErrLost)
	is(t, "Release again", s.Release(t.Context(), old), store.ErrLost)
	is(t, "the next holder's Release", other.Release(t.Context(), next), nil)
}

func TestFailure(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	v1 := fill(t, s, "warm", "one")
	f := store.Failure{Data: []byte("boom"), CoolDown: long, Memory: 2 * long}
	for _, r := range []store.Request{request("cold"), refresh("warm", v1)} {
		l := claim(t, s, r, store.Granted).Lease
		is(t, "Yield", s.Yield(t.Context(), l, f), nil)
		r.Token = store.NewToken()
		got := claim(t, s, r, store.Failed).Failure
		if string(got.Data) != "boom" || got.CoolDown <= 0 || got.CoolDown > long {
			t.Errorf("failure %+v", got)
		}
		lost(t, s, l)
	}
	_, err := s.Get(t.Context(), "cold")
	var miss *store.MissError
	if !errors.As(err, &miss) || miss.Answer.State != store.Failed || string(miss.Answer.Failure.Data) != "boom" {
		t.Errorf("a poll returned %v", err)
	}

	is(t, "Delete", s.Delete(t.Context(), "warm"), nil)
	is(t, "Delete", s.Delete(t.Context(), "cold"), nil)
	claim(t, s, refresh("warm", fill(t, s, "warm", "two")), store.Granted)
	claim(t, s, refresh("cold", fill(t, s, "cold", "two")), store.Granted)
}

// TestFailureIsRemembered: after the cool-down, who is granted the lease learns
// of the failure.
func TestFailureIsRemembered(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	v1 := fill(t, s, "warm", "one")
	for _, r := range []store.Request{request("cold"), refresh("warm", v1)} {
		l := claim(t, s, r, store.Granted).Lease
		is(t, "Yield", s.Yield(t.Context(), l, store.Failure{Data: []byte("boom"), CoolDown: time.Nanosecond, Memory: long}), nil)
		_, err := s.Get(t.Context(), r.Key)
		if miss := new(store.MissError); errors.As(err, &miss) {
			t.Errorf("Get after the cool-down returned %v, want no answer in it", err)
		}
		r.Token = store.NewToken()
		a := claim(t, s, r, store.Granted)
		if string(a.Failure.Data) != "boom" || a.Failure.CoolDown != 0 {
			t.Errorf("granted with failure %+v", a.Failure)
		}
		is(t, "Fill", s.Fill(t.Context(), a.Lease, []byte("two"), long), nil)
		if f := claim(t, s, refresh(r.Key, a.Lease.Token), store.Granted).Failure; f.Data != nil {
			t.Errorf("a failure outlived a fill: %+v", f)
		}
	}
}

// TestAcquireOverEntry: a lease takes the place of an entry of the same key.
func TestAcquireOverEntry(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	v1 := fill(t, s, "k", "one")
	l := claim(t, s, refresh("k", v1), store.Granted).Lease
	lease, err := s.Acquire(t.Context(), request("k"))
	is(t, "Acquire", err, nil)
	lost(t, s, l)
	claim(t, s, request("k"), store.Held)
	is(t, "Release", s.Release(t.Context(), lease), nil)
}
