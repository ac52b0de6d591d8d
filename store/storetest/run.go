package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	// long is a time to live that no case outlasts.
	long = 2 * time.Minute

	// patience is for how long a case waits for what must happen. It is
	// generous: a loaded machine is no broken promise.
	patience = 30 * time.Second

	// pause lies between two questions of a case that waits.
	pause = 20 * time.Millisecond
)

// run is one case at work on one store.
type run struct {
	testing.TB
	b     *Backend
	role  role
	ctx   context.Context
	first any // the store
	again any // a second client of its server
}

func newRun(t testing.TB, r role) *run {
	first := r.open(t)
	again := first
	if r.b.Second != nil {
		again = r.b.Second(t, first)
	}
	return &run{TB: t, b: r.b, role: r, ctx: t.Context(), first: first, again: again}
}

// caches returns the two clients in the role of a Cache.
func (t *run) caches() (c, other store.Cache) {
	t.Helper()
	return as[store.Cache](t, t.first), as[store.Cache](t, t.again)
}

// leasers returns the two clients in the role of a Leaser.
func (t *run) leasers() (l, other store.Leaser) {
	t.Helper()
	return as[store.Leaser](t, t.first), as[store.Leaser](t, t.again)
}

// as finds the capability T of s, which the case cannot do without.
func as[T any](t *run, s any) T {
	t.Helper()
	found, ok := store.As[T](s)
	if !ok {
		t.Fatalf("%T is no %T", s, (*T)(nil))
	}
	return found
}

// key returns a key that nobody has used.
func (t *run) key() string { return "storetest:" + store.NewToken().String() }

// request asks for a lease on key with a token of its own.
func request(key string, ttl time.Duration) store.Request {
	return store.Request{Key: key, Token: store.NewToken(), TTL: ttl}
}

// short is the time to live of what a case waits to see expire.
func (t *run) short() time.Duration { return max(250*time.Millisecond, t.b.Facts.MinTTL) }

// over is for how long to wait until something with the time to live ttl,
// started before, is certainly gone.
func (t *run) over(ttl time.Duration) time.Duration {
	return max(ttl, t.b.Facts.MinTTL) + 2*t.b.Facts.Early + 500*time.Millisecond
}

// eventually asks until yes, and fails the case when patience ends.
func (t *run) eventually(what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !yes(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// inTime runs a case that must act while a short lease is live. A machine that
// stalls makes it inconclusive, then it is tried again with a longer lease.
func (t *run) inTime(try func(ttl time.Duration) (conclusive bool)) {
	t.Helper()
	for ttl := t.short(); ttl < time.Minute; ttl *= 2 {
		if try(ttl) {
			return
		}
	}
	t.Fatal("this machine is too slow for leases of half a minute")
}

func (t *run) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

func (t *run) wantErr(err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// held checks that err says who holds the lease, and returns it.
func (t *run) held(err error) *store.HeldError {
	t.Helper()
	t.wantErr(err, store.ErrHeld)
	var held *store.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %T, want a *store.HeldError", err)
	}
	return held
}

// lessor is what both roles have in common: a lease is taken, renewed and
// ended.
type lessor struct {
	store.Renewer
	take func(ctx context.Context, req store.Request) (store.Lease, error)
	end  func(ctx context.Context, l store.Lease) error
}

// lessors returns the two clients in what both roles have in common.
func (t *run) lessors() (l, other lessor) {
	t.Helper()
	return t.lessor(t.first), t.lessor(t.again)
}

func (t *run) lessor(s any) lessor {
	t.Helper()
	if t.role.name == "Leaser" {
		l := as[store.Leaser](t, s)
		return lessor{Renewer: l, take: l.Acquire, end: l.Release}
	}
	c := as[store.Cache](t, s)
	return lessor{
		Renewer: c,
		take: func(ctx context.Context, req store.Request) (store.Lease, error) {
			a, err := c.Claim(ctx, req)
			switch {
			case err != nil:
				return store.Lease{}, err
			case a.State == store.Held:
				return store.Lease{}, &store.HeldError{Key: req.Key, Holder: a.Holder}
			case a.State != store.Granted:
				return store.Lease{}, errors.New("claim of a key without entry was answered with " + a.State.String())
			}
			return a.Lease, nil
		},
		end: func(ctx context.Context, l store.Lease) error { return c.Yield(ctx, l, store.Failure{}) },
	}
}

// must takes a lease that nobody else has.
func (l lessor) must(t *run, req store.Request) store.Lease {
	t.Helper()
	lease, err := l.take(t.ctx, req)
	t.ok(err)
	if lease.Key != req.Key || lease.Token != req.Token || lease.Grant == 0 {
		t.Fatalf("asked with token %v, got the lease %+v", req.Token, lease)
	}
	return lease
}

// untilGranted asks with new tokens until the lease is granted, and returns it
// with a time at which it had been.
func (l lessor) untilGranted(t *run, key string) (store.Lease, time.Time) {
	t.Helper()
	var lease store.Lease
	t.eventually("the lease is granted", func() bool {
		var err error
		lease, err = l.take(t.ctx, request(key, long))
		if err != nil {
			t.held(err)
		}
		return err == nil
	})
	return lease, time.Now()
}
