package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// queued puts a new request for key into the queue.
func queued(t testing.TB, s *redisstore.Store, key string) store.Request {
	t.Helper()
	req := request(key)
	_, err := s.Enqueue(context.Background(), req)
	wantErr(t, err, store.ErrHeld)
	return req
}

// TestHandedLeaseExpires: a lease out of the queue expires for its holder no
// later than at the server, however late the message comes: QueueTTL after the
// waiter last asked.
func TestHandedLeaseExpires(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	holder, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	events := watch(t, s, "job")
	req := queued(t, s, "job")
	time.Sleep(200 * time.Millisecond)
	before := time.Now()
	_, err = s.Enqueue(ctx, req)
	after := time.Now()
	wantErr(t, err, store.ErrHeld)
	time.Sleep(200 * time.Millisecond)
	ok(t, s.Release(ctx, holder))
	l := nextEvent(t, events, carriesLease).Lease
	if l.Key != "job" || l.Token != req.Token || l.Grant == 0 {
		t.Errorf("handed %+v", l)
	}
	earliest, latest := before.Add(store.QueueTTL-time.Millisecond), after.Add(store.QueueTTL)
	if l.Expires.Before(earliest) || l.Expires.After(latest) {
		t.Errorf("it expires %v too early or %v too late", earliest.Sub(l.Expires), l.Expires.Sub(latest))
	}
	l, err = s.Renew(ctx, l, long)
	ok(t, err)
	ok(t, s.Release(ctx, l))
}

// TestNobodyBargesIn: a plain Acquire of a lease that expired hands it to who
// has waited longest, and is refused.
func TestNobodyBargesIn(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	first := request("job")
	first.TTL = 50 * time.Millisecond
	_, err := s.Acquire(ctx, first)
	ok(t, err)
	events := watch(t, s, "job")
	waiter := queued(t, s, "job")
	var held *store.HeldError
	eventually(t, "the first lease has expired", func() bool {
		_, err := s.Acquire(ctx, request("job"))
		if !errors.As(err, &held) {
			t.Fatalf("the barger got %v", err)
		}
		_, err = s.Enqueue(ctx, waiter)
		return err == nil
	})
	if e := nextEvent(t, events, carriesLease); e.Lease.Token != waiter.Token {
		t.Errorf("handed to %v", e.Lease.Token)
	}
}

// TestQueueOrder: whoever ends a lease, the next one gets it, and who left or
// died is passed over.
func TestQueueOrder(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	l, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	events := watch(t, s, "job")
	var waiters []store.Request
	for range 5 {
		waiters = append(waiters, queued(t, s, "job"))
	}
	turn := func(of store.Request) {
		t.Helper()
		e := nextEvent(t, events, carriesLease)
		if e.Lease.Token != of.Token {
			t.Fatal("handed out of turn")
		}
		l, err = s.Enqueue(ctx, of) // asking again: the same lease
		ok(t, err)
		if l.Grant != e.Lease.Grant {
			t.Errorf("told grant %d, got %d", e.Lease.Grant, l.Grant)
		}
	}
	ok(t, s.Leave(ctx, waiters[1]))
	ok(t, s.Release(ctx, l))
	turn(waiters[0])
	had, err := s.Break(ctx, "job")
	ok(t, err)
	if had.Grant != l.Grant {
		t.Errorf("broke %d, want %d", had.Grant, l.Grant)
	}
	wantErr(t, s.Release(ctx, l), store.ErrLost)
	turn(waiters[2])
	ok(t, s.Leave(ctx, waiters[2])) // releases what it has
	turn(waiters[3])
	ok(t, s.Release(ctx, l))
	turn(waiters[4])
	ok(t, s.Release(ctx, l))
	_, err = s.Acquire(ctx, request("job"))
	ok(t, err)
}

// TestSilentWaiterIsPassedOver: who has not asked for longer than QueueTTL is
// dead, and who asks again is not.
func TestSilentWaiterIsPassedOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	l, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	events := watch(t, s, "job")
	queued(t, s, "job") // and never again
	alive := queued(t, s, "job")
	for asked := time.Now(); time.Since(asked) < store.QueueTTL+store.QueueTTL/2; time.Sleep(50 * time.Millisecond) {
		_, err = s.Enqueue(ctx, alive)
		wantErr(t, err, store.ErrHeld)
	}
	ok(t, s.Release(ctx, l))
	if e := nextEvent(t, events, carriesLease); e.Lease.Token != alive.Token {
		t.Error("the lease was handed to who has not asked for it")
	}
}

// TestQueueShowsWaiterAsHolder: who got the lease out of the queue is shown to
// others with the note it asked with.
func TestQueueShowsWaiterAsHolder(t *testing.T) {
	ctx := context.Background()
	s := newStore(t, single(t, servertest.Redis(t).Addr), nil)
	l, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	req := request("job")
	req.Note.Owner = "the waiter"
	_, err = s.Enqueue(ctx, req)
	wantErr(t, err, store.ErrHeld)
	ok(t, s.Release(ctx, l))
	_, err = s.Acquire(ctx, request("job"))
	var held *store.HeldError
	if !errors.As(err, &held) || held.Holder.Note.Owner != "the waiter" || held.Holder.Left > store.QueueTTL {
		t.Errorf("the holder is shown as %v", err)
	}
}

// TestQueueSurvivesEviction: losing either half of the queue costs places, not
// the queue.
func TestQueueSurvivesEviction(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, nil)
	for i, kind := range []int{3, 4} { // q, p
		key := fmt.Sprint("job", i)
		l, err := s.Acquire(ctx, request(key))
		ok(t, err)
		events := watch(t, s, key)
		waiter := queued(t, s, key)
		ok(t, rdb.Del(ctx, redisstore.Names(s, key)[kind]).Err())
		_, err = s.Enqueue(ctx, waiter) // takes a new place
		wantErr(t, err, store.ErrHeld)
		ok(t, s.Release(ctx, l))
		if e := nextEvent(t, events, carriesLease); e.Lease.Token != waiter.Token {
			t.Errorf("handed to %v", e.Lease.Token)
		}
	}
}
