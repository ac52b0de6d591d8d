package storetest

import (
	"bytes"
	"time"

	"github.com/herdgate/herdgate/store"
)

// claim asks and checks that the answer is want.
func (t *run) claim(c store.Cache, req store.Request, want store.State) store.Answer {
	t.Helper()
	a, err := c.Claim(t.ctx, req)
	t.ok(err)
	if a.State != want {
		t.Fatalf("the claim was answered %v, want %v", a.State, want)
	}
	return a
}

// granted claims key with a new token, gets the lease and returns it.
func (t *run) granted(c store.Cache, key string, seen store.Token) store.Lease {
	t.Helper()
	req := request(key, long)
	req.Seen = seen
	return t.claim(c, req, store.Granted).Lease
}

// load claims key and fills it, and returns the lease that did it.
func (t *run) load(c store.Cache, key, value string) store.Lease {
	t.Helper()
	l := t.granted(c, key, store.Token{})
	t.ok(c.Fill(t.ctx, l, []byte(value), long))
	return l
}

// misses checks that there is no entry.
func (t *run) misses(c store.Cache, key string) {
	t.Helper()
	e, err := c.Get(t.ctx, key)
	if err == nil {
		t.Fatalf("got the entry %.80q of version %v, want none", e.Value, e.Version)
	}
	t.wantErr(err, store.ErrMiss)
}

// has checks that the entry of key is value, with the given version.
func (t *run) has(c store.Cache, key string, version store.Token, value string) store.Entry {
	t.Helper()
	e, err := c.Get(t.ctx, key)
	t.ok(err)
	t.is(e, version, value)
	return e
}

func (t *run) is(e store.Entry, version store.Token, value string) {
	t.Helper()
	if e.Version != version || !bytes.Equal(e.Value, []byte(value)) {
		t.Fatalf("got %.80q of version %v, want %.80q of %v", e.Value, e.Version, value, version)
	}
}

// fillLost checks that l cannot fill any more.
func (t *run) fillLost(c store.Cache, l store.Lease) {
	t.Helper()
	t.wantErr(c.Fill(t.ctx, l, []byte("too late"), long), store.ErrLost)
}

// untilClaimed asks with new tokens until the answer is Granted, and returns
// it with a time at which it had been given.
func (t *run) untilClaimed(c store.Cache, key string, seen store.Token) (store.Answer, time.Time) {
	t.Helper()
	var a store.Answer
	t.eventually("the claim is granted", func() bool {
		req := request(key, long)
		req.Seen, req.Repeated = seen, true
		var err error
		a, err = c.Claim(t.ctx, req)
		t.ok(err)
		return a.State == store.Granted
	})
	return a, time.Now()
}
