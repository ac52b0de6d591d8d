package guard

import (
	"reflect"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
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
// has a renewer of its own, and every server of it goroutines and batches of
// its own, so that a slow one delays no other.
type renewer struct {
	s       store.Leaser
	watches bool // s tells of leases that others ended
	batch   int

	guards int // that use it; protected by renewers.mu

	mu    sync.Mutex // protects what follows and the timing of the holds
	holds map[*hold]struct{}
	lanes map[string]*lane // those that are due, by server
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
	shared := reflect.ValueOf(s).Comparable() // or it cannot be a key
	if shared && renewers.m[s] != nil {
		r := renewers.m[s]
		r.guards++
		return r
	}
	r := &renewer{
		s: s, batch: 1, guards: 1,
		holds: make(map[*hold]struct{}), lanes: make(map[string]*lane),
	}
	_, r.watches = store.As[store.Watcher](s)
	if _, ok := store.As[store.BatchRenewer](s); ok {
		r.batch = batch
	}
	if shared {
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
