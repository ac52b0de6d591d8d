package guard

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	// batch is how many leases one call of a store renews, if it can.
	batch = 64

	// maxCalls bounds the calls under way at one store, so that a driver
	// that never returns costs a few goroutines and not one per try.
	maxCalls = 8

	// slack is by how much a renewal may come early to join others.
	slack = 10 * time.Millisecond

	// watchAfter is when the end of a lease is worth watching for: most
	// leases have been released by then and never cost a watch.
	watchAfter = 50 * time.Millisecond
)

// renewer renews the leases of one store, for all guards of the process.
//
// It has one timer, and no goroutine while nothing is due, for any number of
// leases. When the timer fires, the leases whose time is over are ended, and
// those that are due are renewed in batches by a few goroutines. Every store
// has a renewer of its own, so that a slow one delays no other, and no lease
// waits for the reply of another's call.
type renewer struct {
	s       store.Leaser
	watches bool // s tells of leases that others ended
	batch   int

	guards int // that use it; protected by renewers.mu

	mu    sync.Mutex // protects what follows and the timing of the holds
	holds map[*hold]struct{}
	queue map[time.Duration][]*hold // due, by time to live
	calls int                       // goroutines that empty the queue
	timer *time.Timer
	at    time.Time // when timer fires, zero if it does not
}

// renewers has the renewer of each store that a guard uses.
var renewers = struct {
	mu sync.Mutex // protects m
	m  map[store.Leaser]*renewer
}{m: make(map[store.Leaser]*renewer)}

// renewerOf returns the renewer of s, for one more guard. A store that cannot
// be told from others has one for each guard.
func renewerOf(s store.Leaser) *renewer {
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	comparable := reflect.ValueOf(s).Comparable()
	if comparable && renewers.m[s] != nil {
		r := renewers.m[s]
		r.guards++
		return r
	}
	r := &renewer{
		s: s, batch: 1, guards: 1,
		holds: make(map[*hold]struct{}), queue: make(map[time.Duration][]*hold),
	}
	_, r.watches = store.As[store.Watcher](s)
	if _, ok := store.As[store.BatchRenewer](s); ok {
		r.batch = batch
	}
	if comparable {
		renewers.m[s] = r
	}
	return r
}

// disuse says that one guard needs the renewer no longer.
func (r *renewer) disuse() {
	renewers.mu.Lock()
	defer renewers.mu.Unlock()
	if r.guards--; r.guards == 0 && reflect.ValueOf(r.s).Comparable() {
		delete(renewers.m, r.s)
	}
}

// add keeps h alive from now on.
func (r *renewer) add(h *hold, l store.Lease) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	h.set(l, now)
	if soon := now.Add(watchAfter); r.watches && soon.Before(h.next) {
		h.next = soon
	}
	r.holds[h] = struct{}{}
	r.wakeBy(h.wake())
}

// remove renews h no longer and returns the lease as it is now.
func (r *renewer) remove(h *hold) store.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.has(h) {
		return h.lease
	}
	delete(r.holds, h)
	if h.watching != nil {
		close(h.watching)
	}
	if len(r.holds) == 0 && r.timer != nil {
		r.timer.Stop()
		r.at = time.Time{}
	}
	return h.lease
}

func (r *renewer) has(h *hold) bool {
	_, ok := r.holds[h]
	return ok
}

// of returns the holds of g.
func (r *renewer) of(g *Guard) []*hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	var holds []*hold
	for h := range r.holds {
		if h.g == g {
			holds = append(holds, h)
		}
	}
	return holds
}

// overdue returns why h must end now, nil if it need not.
func (r *renewer) overdue(h *hold) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.has(h) {
		return nil
	}
	return h.over(time.Now())
}

// wakeBy makes the timer fire at t or before.
func (r *renewer) wakeBy(t time.Time) {
	if !r.at.IsZero() && !t.Before(r.at) {
		return
	}
	r.at = t
	if r.timer == nil {
		r.timer = time.AfterFunc(time.Until(t), r.tick)
		return
	}
	r.timer.Reset(time.Until(t))
}

// tick ends the holds whose time is over and has those renewed that are due.
func (r *renewer) tick() {
	now := time.Now()
	var over []ending
	r.mu.Lock()
	r.at = time.Time{}
	for h := range r.holds {
		if cause := h.over(now); cause != nil {
			over = append(over, ending{h, cause})
			continue
		}
		if h.due(now) {
			r.renewOrWatch(h, now)
		}
		r.wakeBy(h.wake())
	}
	r.mu.Unlock()
	for _, e := range over {
		e.hold.end(e.cause)
	}
}

// ending is the end of a hold, which is told without the renewer's lock.
type ending struct {
	hold  *hold
	cause error
}

// renewOrWatch queues h for its renewal. Where the store has watches it is
// watched first, and queued when the watch is live, or has failed. A watch that
// failed is tried again with the next renewals.
func (r *renewer) renewOrWatch(h *hold, now time.Time) {
	if !r.watches || h.watching != nil {
		r.enqueue(h)
		return
	}
	h.watching = make(chan struct{})
	h.g.stay()
	go r.watch(h, h.watching)
	if h.unwatched {
		r.enqueue(h)
		return
	}
	h.next = now.Add(h.patience())
}

// enqueue has h renewed as soon as a call is free for it.
func (r *renewer) enqueue(h *hold) {
	h.queued = true
	r.queue[h.ttl] = append(r.queue[h.ttl], h)
	if r.calls < maxCalls {
		r.calls++
		go r.work()
	}
}

// work renews what is queued, batch after batch.
func (r *renewer) work() {
	for {
		holds, leases := r.dequeue()
		if len(holds) == 0 {
			return
		}
		r.renew(holds, leases)
		for _, h := range holds {
			h.g.leave()
		}
	}
}

// dequeue takes a batch of one time to live from the queue. An empty one ends
// the goroutine that works on it.
func (r *renewer) dequeue() (holds []*hold, leases []store.Lease) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for ttl, queue := range r.queue {
		for len(queue) > 0 && len(holds) < r.batch {
			h := queue[0]
			queue = queue[1:]
			h.queued = false
			if !r.has(h) {
				continue
			}
			h.calls++
			h.next = now.Add(h.patience())
			h.g.stay()
			holds, leases = append(holds, h), append(leases, h.lease)
			r.wakeBy(h.wake())
		}
		r.queue[ttl] = queue
		if len(queue) == 0 {
			delete(r.queue, ttl)
		}
		if len(holds) > 0 {
			return holds, leases
		}
	}
	r.calls--
	return nil, nil
}

// renew asks the store once, and takes over what it says. An answer that comes
// late counts too: the lease's time is that of the question.
func (r *renewer) renew(holds []*hold, leases []store.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), holds[0].patience())
	defer cancel()
	renewed, errs := store.RenewAll(ctx, r.s, leases, holds[0].ttl)

	now := time.Now()
	var lost []*hold
	r.mu.Lock()
	for i, h := range holds {
		h.calls--
		switch {
		case !r.has(h):
			continue
		case errors.Is(errs[i], store.ErrLost):
			lost = append(lost, h)
			continue
		case errs[i] != nil:
			h.trouble = errs[i]
			h.next = now.Add(min(h.ttl/20, time.Second/2))
		case renewed[i].Expires.After(h.lease.Expires):
			h.set(renewed[i], now)
		}
		r.wakeBy(h.wake())
	}
	r.mu.Unlock()
	for _, h := range lost {
		h.end(ErrLost)
	}
}

// watch ends h as soon as somebody else ended its lease. Once the watch is
// live the lease is renewed, lest it ended just before:
// TestBreakBeforeTheHolderWatches.
func (r *renewer) watch(h *hold, over <-chan struct{}) {
	defer h.g.leave()
	events, stop := watchKey(context.Background(), r.s, h.key(), h.patience())
	defer stop()
	r.watched(h, events != nil)
	for events != nil {
		select {
		case <-over:
			return
		case e := <-events:
			switch e.Grant {
			case h.grant:
				h.end(ErrLost)
				return
			case 0: // look again
				r.watched(h, true)
			}
		}
	}
}

// watched notes whether the watch of h is live, and has h renewed: at once if
// it is, and if it is not for the first time. Later, other tries to watch come
// with a renewal anyway.
func (r *renewer) watched(h *hold, live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.has(h) {
		return
	}
	first := !h.unwatched
	if h.unwatched = !live; h.unwatched {
		h.watching = nil
	}
	if (live || first) && !h.queued {
		r.enqueue(h)
	}
}
