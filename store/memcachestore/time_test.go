package memcachestore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

func TestSeconds(t *testing.T) {
	const day = 24 * time.Hour
	for ttl, want := range map[time.Duration]int32{
		-time.Hour: 2, 0: 2, 1: 2, time.Second: 2, 2 * time.Second: 2,
		2*time.Second + 1: 3, 2500 * time.Millisecond: 3, time.Minute: 60,
		30*day - 1: 30 * 86400, 30 * day: 30 * 86400, 31 * day: 30 * 86400,
		1<<63 - 1: 30 * 86400,
	} {
		if got := seconds(ttl); got != want {
			t.Errorf("seconds(%v) is %d, want %d", ttl, got, want)
		}
	}
}

// TestLaw8Expires: the holder counts from before the request, one second less.
func TestLaw8Expires(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, wire := newStore(t, server.Addr)
	var arrived time.Time
	wire.before("add", func() { arrived = time.Now() })
	r := request("k")
	r.TTL = 2500 * time.Millisecond
	l := claim(t, s, r, store.Granted).Lease
	if most := arrived.Add(2 * time.Second); l.Expires.After(most) {
		t.Errorf("the lease expires %v late", l.Expires.Sub(most))
	}
	wire.before("cas", func() { arrived = time.Now() })
	l, err := s.Renew(t.Context(), l, 31*24*time.Hour)
	is(t, "Renew", err, nil)
	if most := arrived.Add(30*24*time.Hour - time.Second); l.Expires.After(most) {
		t.Errorf("the renewed lease expires %v late", l.Expires.Sub(most))
	}
}

// TestRealTime waits for leases, failures and entries to end on a server, all
// at once.
func TestRealTime(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	ctx := t.Context()
	brief := func(r store.Request) store.Request { r.TTL = time.Second; return r }

	warm := fill(t, s, "warm", "one")
	kept := fill(t, s, "kept", "one")
	cold := claim(t, s, brief(request("cold")), store.Granted).Lease
	fresh := claim(t, s, brief(refresh("warm", warm)), store.Granted).Lease
	renewed := claim(t, s, brief(request("renewed")), store.Granted).Lease
	again := claim(t, s, brief(refresh("kept", kept)), store.Granted).Lease
	failed := claim(t, s, request("failed"), store.Granted).Lease
	is(t, "Yield", s.Yield(ctx, failed, store.Failure{Data: []byte("boom"), CoolDown: time.Second, Memory: time.Second}), nil)
	short := claim(t, s, request("short"), store.Granted).Lease
	is(t, "Fill", s.Fill(ctx, short, []byte("one"), time.Second), nil)
	is(t, "Put", s.Put(ctx, "put", store.NewToken(), []byte("one"), 32*24*time.Hour), nil)
	stale := claim(t, s, request("stale"), store.Granted).Lease
	is(t, "Fill", s.Fill(ctx, stale, []byte("one"), time.Second), nil)
	is(t, "Expire", s.Expire(ctx, "stale"), nil)
	for _, l := range []store.Lease{renewed, again} {
		_, err := s.Renew(ctx, l, long)
		is(t, "Renew", err, nil)
	}

	ends := func(key string) bool {
		_, err := s.Get(ctx, key)
		var seen *store.MissError
		return errors.Is(err, store.ErrMiss) && !errors.As(err, &seen)
	}
	await(t, func() bool {
		return ends("cold") && ends("failed") && ends("short") && ends("stale")
	})
	await(t, func() bool { // the lease item of a refresh shows only by a claim
		_, err := s.Renew(ctx, fresh, long)
		return errors.Is(err, store.ErrLost)
	})
	lost(t, s, cold)
	lost(t, s, fresh)
	claim(t, s, request("cold"), store.Granted)
	claim(t, s, refresh("warm", warm), store.Granted)
	claim(t, s, request("renewed"), store.Held)
	claim(t, s, refresh("kept", kept), store.Held)
	if f := claim(t, s, request("failed"), store.Granted).Failure; f.Data != nil {
		t.Errorf("a failure outlived its memory: %+v", f)
	}
	entry(t, s, "put", "one")
}

// await polls until done, within what a slow machine may take.
func await(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within 30 s")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestRemaining: Expire writes the entry anew for the rest of its time only.
func TestRemaining(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for age, want := range map[time.Duration]time.Duration{
		0: time.Minute, 20 * time.Second: 40 * time.Second, time.Hour: 0,
		-time.Hour: time.Minute, // the writer's clock was ahead of ours
	} {
		r := record{stamp: now.Add(-age).UnixMilli(), span: time.Minute}
		if got := r.remaining(now); got != want {
			t.Errorf("at the age of %v %v remain, want %v", age, got, want)
		}
	}
}

// TestLaw8CoolDown: whatever the writer's clock says, nobody waits longer than
// one cool-down after first sight.
func TestLaw8CoolDown(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{
		-time.Hour:              0, // our clock is ahead, or the failure is old
		-400 * time.Millisecond: 600 * time.Millisecond,
		0:                       time.Second,
		300 * time.Millisecond:  time.Second,
		time.Hour:               time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, start := new(strangeClocks), time.Now()
			failure := record{kind: kindFailure, stamp: start.Add(ahead).UnixMilli(), span: time.Second}
			for c.coolDown("k", failure, time.Now()) > 0 {
				time.Sleep(10 * time.Millisecond)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("clock %v ahead: cooled down after %v, want %v", ahead, waited, want)
			}
		})
	}
}

func TestStrangeClocksAreBounded(t *testing.T) {
	c, now := new(strangeClocks), time.Now()
	for i := range 3 * maxSights {
		c.coolDown("k", record{stamp: now.Add(time.Hour).UnixMilli() + int64(i), span: time.Second}, now)
	}
	if len(c.seen) > maxSights {
		t.Errorf("%d failures are remembered, want at most %d", len(c.seen), maxSights)
	}
}
