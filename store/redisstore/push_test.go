package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// TestHolderKeepsListening: renewing a lease that is watched keeps its holder
// among those who are told when somebody ends it.
func TestHolderKeepsListening(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s, other := newStore(t, rdb, nil), newStore(t, rdb, nil)
	events := watch(t, s, "job")
	req := request("job")
	req.TTL = 10 * time.Second
	l, err := s.Acquire(ctx, req)
	ok(t, err)
	l, err = s.Renew(ctx, l, long)
	ok(t, err)
	if left := rdb.PTTL(ctx, redisstore.Names(s, "job")[2]).Val(); left < long-patience {
		t.Errorf("the holder is forgotten in %v, the lease ends in %v", left, long)
	}
	_, err = other.Break(ctx, "job")
	ok(t, err)
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant {
		t.Errorf("the holder was told %+v", e)
	}
}

// TestLeaderTellsItsOwnProcess: who waits in the process that loads is told
// without the detour over the server.
func TestLeaderTellsItsOwnProcess(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	events := watch(t, s, "key")
	l := claimed(t, s, "key")
	ok(t, s.Yield(ctx, l, store.Failure{Data: []byte("boom"), CoolDown: time.Millisecond, Memory: long}))
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant || string(e.Failure.Data) != "boom" {
		t.Errorf("the yield was told as %+v", e)
	}
	eventually(t, "the failure has cooled down", func() bool {
		a, err := s.Claim(ctx, request("key"))
		l = a.Lease
		return err == nil && a.State == store.Granted
	})
	ok(t, s.Fill(ctx, l, []byte("value"), long))
	if e := nextEvent(t, events, namesGrant); e.Grant != l.Grant || string(e.Entry.Value) != "value" {
		t.Errorf("the fill was told as %+v", e)
	}
}

// TestPushCarriesSmallValues: up to 4 KiB travel with the wake-up.
func TestPushCarriesSmallValues(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	leader, waiter := newStore(t, rdb, nil), newStore(t, rdb, nil)
	for size, carried := range map[int]bool{0: true, 4096: true, 4097: false} {
		key := strings.Repeat("k", size+1)
		events := watch(t, waiter, key)
		l := claimed(t, leader, key)
		_, err := waiter.Claim(ctx, request(key))
		ok(t, err)
		ok(t, leader.Fill(ctx, l, make([]byte, size), long))
		e := nextEvent(t, events, namesGrant)
		if got := e.Entry.Version == l.Token && len(e.Entry.Value) == size; got != carried {
			t.Errorf("%d bytes were carried: %v, want %v", size, got, carried)
		}
	}
}
