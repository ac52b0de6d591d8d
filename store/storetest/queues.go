package storetest

import (
	"slices"
	"time"

	"github.com/herdgate/herdgate/store"
)

// queueCases are about fair order.
var queueCases = []testCase{
	{
		name:    "EnqueueIsAcquire",
		promise: "Enqueue is Acquire: a free key is granted, the own token gets its lease again, who is refused learns the holder",
		needs:   queues,
		run: func(t *run) {
			q, other := t.queuers()
			req := request(t.key(), long)
			lease := t.enqueued(q, req)
			again := t.enqueued(q, req)
			if lease.Token != req.Token || again.Grant != lease.Grant {
				t.Errorf("asked twice, got %+v and %+v", lease, again)
			}
			_, err := other.Enqueue(t.ctx, request(req.Key, long))
			if got := t.held(err).Holder.Grant; got != lease.Grant {
				t.Errorf("the holder is shown as %d, it is %d", got, lease.Grant)
			}
			for _, wrong := range []store.Request{{Key: t.key(), TTL: long}, {Key: t.key(), Token: store.NewToken()}} {
				if _, err := q.Enqueue(t.ctx, wrong); err == nil {
					t.Errorf("the request %+v was taken", wrong)
				}
			}
		},
	},
	{
		name:    "FirstComeFirstServed",
		promise: "a released lease is granted to whoever has waited longest",
		needs:   queues,
		run:     func(t *run) { t.inOrder(firstComeFirstServed) },
	},
	{
		name:    "AskingAgainKeepsThePlace",
		promise: "asked again with the same token within QueueTTL, Enqueue keeps the place, for as long as it takes",
		needs:   queues,
		run:     askingAgain,
	},
	{
		name:    "TurnIsToldByAnEvent",
		promise: "when its turn comes, a waiter's Watch receives an Event with its Lease, which it may renew and release",
		needs:   func(b *Backend) bool { return b.Queues && b.Watches },
		run:     func(t *run) { t.inOrder(turnIsTold) },
	},
	{
		name:    "LostTurnIsFoundByAskingAgain",
		promise: "asked again with the same token, Enqueue returns the lease if it has been granted: a lost event costs nothing",
		needs:   queues,
		run: func(t *run) {
			q, other := t.queuers()
			l, _ := t.leasers()
			lease := t.enqueued(q, request(t.key(), long))
			waiting := request(lease.Key, long)
			t.waits(other, waiting)
			t.ok(l.Release(t.ctx, lease))
			if got := t.enqueued(other, waiting); got.Token != waiting.Token || got.Grant == lease.Grant {
				t.Errorf("grant %d was followed by the lease %+v", lease.Grant, got)
			}
		},
	},
	{
		name:    "DeadWaiterCostsQueueTTL",
		promise: "a lease granted out of the queue runs for QueueTTL at most until it is renewed: a waiter that died holds up nobody longer",
		needs:   queues,
		run:     deadWaiter,
	},
	{
		name:    "DeadHolderIsFollowed",
		promise: "a lease that expired goes to who waits",
		needs:   queues,
		run: func(t *run) {
			q, other := t.queuers()
			lease := t.enqueued(q, request(t.key(), t.short()))
			waiting := request(lease.Key, long)
			t.eventually("the waiter follows the holder that died", func() bool {
				got, err := other.Enqueue(t.ctx, waiting)
				if err != nil {
					t.held(err)
					return false
				}
				if time.Now().Before(lease.Expires) {
					t.Errorf("the waiter got %+v before the lease expired", got)
				}
				return true
			})
		},
	},
	{
		name:    "LeaveGivesUpThePlace",
		promise: "Leave gives up the place in the queue; without a place it is no error",
		needs:   queues,
		run:     func(t *run) { t.inOrder(leaveGivesUp) },
	},
	{
		name:    "LeaveReleasesTheLease",
		promise: "Leave releases the lease if it was granted in the meantime",
		needs:   queues,
		run: func(t *run) {
			q, other := t.queuers()
			l, _ := t.leasers()
			lease := t.enqueued(q, request(t.key(), long))
			waiting := request(lease.Key, long)
			t.waits(other, waiting)
			t.ok(l.Release(t.ctx, lease))
			granted := t.enqueued(other, waiting)
			t.ok(other.Leave(t.ctx, waiting))
			t.wantErr(l.Release(t.ctx, granted), store.ErrLost)
			t.enqueued(q, request(lease.Key, long))
		},
	},
	{
		name:    "QueueGivesFences",
		promise: "a lease granted out of the queue has the fence that was asked for, and it has grown",
		needs:   func(b *Backend) bool { return b.Queues && b.Facts.Fences },
		run: func(t *run) {
			q, other := t.queuers()
			l, _ := t.leasers()
			lease := t.enqueued(q, fenced(t.key(), long))
			waiting := fenced(lease.Key, long)
			t.waits(other, waiting)
			t.ok(l.Release(t.ctx, lease))
			if got := t.enqueued(other, waiting); lease.Fence == 0 || got.Fence <= lease.Fence {
				t.Errorf("fence %d was followed by %d", lease.Fence, got.Fence)
			}
		},
	},
}

// queuers returns the two clients in the role of a Queuer.
func (t *run) queuers() (q, other store.Queuer) {
	t.Helper()
	return as[store.Queuer](t, t.first), as[store.Queuer](t, t.again)
}

// enqueued asks and gets the lease.
func (t *run) enqueued(q store.Queuer, req store.Request) store.Lease {
	t.Helper()
	lease, err := q.Enqueue(t.ctx, req)
	t.ok(err)
	return lease
}

// waits asks and gets a place in the queue.
func (t *run) waits(q store.Queuer, req store.Request) {
	t.Helper()
	_, err := q.Enqueue(t.ctx, req)
	t.held(err)
}

// inOrder runs a case that is about the order of places, which a store may
// drop after QueueTTL. A machine that stalls for so long makes the case
// inconclusive, then it is tried again.
func (t *run) inOrder(try func(t *run) (wrong string)) {
	t.Helper()
	for range 5 {
		start := time.Now()
		wrong := try(t)
		if wrong == "" {
			return
		}
		if time.Since(start) < store.QueueTTL {
			t.Fatal(wrong)
		}
	}
	t.Fatal("this machine is too slow for places of " + store.QueueTTL.String())
}

// firstComeFirstServed lets waiters come one after another, ask in the reverse
// order, and checks whose turn it is.
func firstComeFirstServed(t *run) string {
	q, other := t.queuers()
	l, _ := t.leasers()
	lease := t.enqueued(q, request(t.key(), long))
	var waiting []store.Request
	for i := range 5 {
		req := request(lease.Key, long)
		waiting = append(waiting, req)
		t.waits([]store.Queuer{q, other}[i%2], req)
	}
	for range waiting { // asking again keeps the place
		for _, req := range slices.Backward(waiting) {
			t.waits(q, req)
		}
		t.ok(l.Release(t.ctx, lease))
		var turn []int
		for i, req := range slices.Backward(waiting) {
			got, err := other.Enqueue(t.ctx, req)
			if err == nil {
				lease, turn = got, append(turn, i)
				continue
			}
			t.held(err)
		}
		if !slices.Equal(turn, []int{0}) {
			return "of those who still wait, whose turn it was are not the first alone"
		}
		waiting = waiting[1:]
	}
	return ""
}

// turnIsTold returns what is wrong, if anything. It must renew within QueueTTL.
func turnIsTold(t *run) string {
	q, other := t.queuers()
	l, second := t.leasers()
	lease := t.enqueued(q, request(t.key(), long))
	waiting := request(lease.Key, long)
	w := t.watch(other, lease.Key)
	asked := time.Now()
	t.waits(other, waiting)
	t.ok(l.Release(t.ctx, lease))
	if time.Since(asked) > store.QueueTTL {
		return "the place was dropped"
	}
	granted := w.turn(t, waiting)
	if granted.Key != waiting.Key || granted.Grant == 0 || granted.Grant == lease.Grant {
		t.Fatalf("grant %d was followed by the lease %+v", lease.Grant, granted)
	}
	if left := time.Until(granted.Expires); left > store.QueueTTL {
		t.Errorf("the lease runs for %v before its first renewal", left)
	}
	renewed, err := second.Renew(t.ctx, granted, long)
	if err != nil {
		return "the lease cannot be renewed: " + err.Error()
	}
	time.Sleep(t.over(store.QueueTTL))
	t.waits(q, request(lease.Key, long))
	t.ok(second.Release(t.ctx, renewed))
	return ""
}

// turn waits for the event that grants the lease to req.
func (w watching) turn(t *run, req store.Request) store.Lease {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case e := <-w.events:
			if e.Lease.Token == req.Token {
				return e.Lease
			}
		case <-timeout:
			t.Fatalf("waited %v in vain for the turn", patience)
		}
	}
}

func deadWaiter(t *run) {
	q, other := t.queuers()
	l, _ := t.leasers()
	lease := t.enqueued(q, request(t.key(), long))
	dead, alive := request(lease.Key, long), request(lease.Key, long)
	t.waits(q, dead)
	t.waits(other, alive)
	released := time.Now()
	t.ok(l.Release(t.ctx, lease))
	t.eventually("the next waiter gets the lease", func() bool {
		_, err := other.Enqueue(t.ctx, alive)
		if err != nil {
			t.held(err)
		}
		return err == nil
	})
	// A generous bound: without QueueTTL it would take the dead waiter's own
	// time to live.
	if took := time.Since(released); took > store.QueueTTL+patience/2 {
		t.Errorf("the dead waiter held up the next for %v", took)
	}
}

// askingAgain lets two waiters ask again and again for longer than QueueTTL, and
// checks that the first is still the first. A machine that stalls makes it
// inconclusive.
func askingAgain(t *run) {
	q, other := t.queuers()
	l, _ := t.leasers()
	for range 5 {
		lease := t.enqueued(q, request(t.key(), long))
		waiting := []store.Request{request(lease.Key, long), request(lease.Key, long)}
		last, gap := time.Now(), time.Duration(0)
		ask := func() {
			for _, req := range waiting {
				t.waits(other, req)
			}
			gap, last = max(gap, time.Since(last)), time.Now()
		}
		for start := time.Now(); time.Since(start) < 5*store.QueueTTL/2; time.Sleep(pause) {
			ask()
		}
		t.ok(l.Release(t.ctx, lease))
		gap = max(gap, time.Since(last))
		_, second := q.Enqueue(t.ctx, waiting[1])
		_, first := other.Enqueue(t.ctx, waiting[0])
		if first == nil && second != nil {
			return
		}
		if gap < store.QueueTTL/2 {
			t.Fatalf("the first was answered %v, the second %v", first, second)
		}
	}
	t.Fatal("this machine is too slow for places of " + store.QueueTTL.String())
}

func leaveGivesUp(t *run) string {
	q, other := t.queuers()
	l, _ := t.leasers()
	lease := t.enqueued(q, request(t.key(), long))
	first, second := request(lease.Key, long), request(lease.Key, long)
	t.waits(q, first)
	t.waits(other, second)
	t.ok(other.Leave(t.ctx, first))
	t.ok(other.Leave(t.ctx, first))
	t.ok(other.Leave(t.ctx, request(t.key(), long)))
	t.ok(l.Release(t.ctx, lease))
	if _, err := q.Enqueue(t.ctx, second); err != nil {
		t.held(err)
		return "the place that was given up had its turn"
	}
	return ""
}
