package cachefill

import (
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// look is the question what the store has under a key, for the callers that
// have gathered. However many ask for a hot key, one Get of this process is
// under way for it; who comes meanwhile gathers for the next.
type look struct {
	e     *engine
	key   string
	sh    *shard
	slot  *slot
	batch *batch
	epoch uint64 // of the shard when the look began
}

// startLook begins a look for sl.next, or refuses its callers once closed. The
// shard is locked.
func (e *engine) startLook(key string, sh *shard, sl *slot) {
	l := &look{e: e, key: key, sh: sh, slot: sl}
	l.begin()
	if !e.reads.add(l) {
		sl.looking = nil
		endAll(l.batch.seats, verdict{result: result{err: ErrClosed}})
	}
}

// begin makes the next batch the one that is looked for. The shard is locked.
func (l *look) begin() {
	l.batch, l.slot.next = l.slot.next, nil
	l.slot.looking = l.batch
	l.epoch = l.sh.epoch
}

// found makes out what the store answered, and answers the batch. It reports
// whether another batch has gathered. What it saw of a holder saves the claim
// only if ends of leases are polled for: a watch begins after the look, and
// the claim is the question asked again after it.
func (l *look) found(entry store.Entry, err error) (more bool) {
	var missed *store.MissError
	switch {
	case err == nil:
		return l.answer(l.e.read(l.key, entry, l.batch.lead.kind), nil, nil)
	case !errors.Is(err, store.ErrMiss):
		return l.answer(stored{}, nil, unavailable(err))
	case !l.e.watches && errors.As(err, &missed):
		return l.answer(stored{}, &missed.Answer, nil)
	}
	return l.answer(stored{}, nil, nil)
}

// answer answers the callers for whom v will do, and hands the others to a
// flight. It reports whether another batch is to be looked for.
func (l *look) answer(v stored, seen *store.Answer, err error) (more bool) {
	l.sh.mu.Lock()
	defer l.sh.mu.Unlock()
	b := l.batch
	l.slot.looking = nil
	switch {
	case err != nil:
		l.e.toFlight(l.key, l.sh, l.slot, b, v, nil, err)
	case v.state == stateOtherType:
		endAll(b.seats, verdict{result: result{err: v.err}})
	case v.state == stateFresh:
		l.serveFresh(b, v)
	case v.state == stateStale:
		l.serveStale(b, v)
	default:
		l.e.toFlight(l.key, l.sh, l.slot, b, v, seen, nil)
	}
	if l.slot.next == nil {
		l.sh.forget(l.key, l.slot)
		return false
	}
	l.begin()
	return true
}

func (l *look) serveFresh(b *batch, v stored) {
	if l.epoch == l.sh.epoch && v.err == nil {
		l.e.near.put(l.key, v, v.left)
	}
	endAll(b.seats, verdict{result: v.result(l.e.now(), Fresh)})
	if l.e.set.refreshEarly(v) {
		l.e.refresh(l.key, l.sh, l.slot, b.lead, v)
	}
}

// serveStale gives the older value to who accepts it, and lets one flight
// replace it.
func (l *look) serveStale(b *batch, v stored) {
	demanding := b.serve(verdict{result: v.result(l.e.now(), Stale)})
	if len(demanding.seats) > 0 {
		l.e.toFlight(l.key, l.sh, l.slot, demanding, v, nil, nil)
		return
	}
	l.e.refresh(l.key, l.sh, l.slot, b.lead, v)
}

// serve answers those callers of b who accept an older value with v, and
// returns the others. The shard is locked.
func (b *batch) serve(v verdict) *batch {
	demanding := &batch{lead: b.lead, urgent: b.urgent, spent: b.spent}
	for _, s := range b.seats {
		if s.fresh {
			demanding.seats = append(demanding.seats, s)
			continue
		}
		s.end(v)
	}
	return demanding
}

// refresh starts a flight that nobody waits for, unless one is under way or
// the key is to be left alone. The shard is locked.
func (e *engine) refresh(key string, sh *shard, sl *slot, lead *leader, v stored) {
	if sl.flight != nil || sl.quiet.active() {
		return
	}
	f := newFlight(e, key, sh, sl, lead, v)
	f.servable, f.background = true, true
	if e.spawn(f.run) {
		sl.flight = f
	}
}

// toFlight lets b be answered by a flight: the one whose claim has not been
// sent, or a new one, or after the one that is under way. v is what the look
// found, seen what it saw of a lease, err why it found nothing out.
// The shard is locked.
func (e *engine) toFlight(key string, sh *shard, sl *slot, b *batch, v stored, seen *store.Answer, err error) {
	if len(b.seats) == 0 {
		return
	}
	for _, s := range b.seats {
		e.arm(s, key)
	}
	if f := sl.flight; f != nil {
		if f.soft && v.servesOnError() {
			b = b.serve(verdict{result: v.result(e.now(), Stale)})
		}
		if len(b.seats) == 0 {
			return
		}
		batchAt(&sl.late).merge(b)
		if b.urgent {
			sl.flight.hurry()
		}
		return
	}
	if sl.quiet.active() && e.keepQuiet(sl, b, v) {
		return
	}
	f := newFlight(e, key, sh, sl, b.lead, v)
	f.urgent, f.spent = b.urgent, b.spent
	f.answer, f.unreachable = seen, err
	f.local = v.state == stateNewer || (sl.quiet.active() && sl.quiet.failure.Kind == kindTooLarge)
	f.servable = v.state == stateStale // b wants better: the others need not wait
	f.admit(b)
	if f.answer == nil && !f.servable {
		// They joined before the claim is sent, so it answers them too.
		f.admit(sl.next)
		sl.next = nil
	}
	if !e.spawn(f.run) {
		endAll(f.present, verdict{result: result{err: ErrClosed}})
		return
	}
	sl.flight = f
}

// keepQuiet answers b while the key is not to be loaded. It reports false if
// it may be, without a claim. The shard is locked.
func (e *engine) keepQuiet(sl *slot, b *batch, v stored) bool {
	q := sl.quiet
	err := e.set.errOf(q.failure, time.Until(q.until))
	switch {
	case q.failure.Kind == kindTooLarge:
		return false
	case q.failure.Kind == kindPrivate:
		endAll(b.seats, verdict{alone: true, spent: b.spent})
	case v.servesOnError():
		endAll(b.seats, verdict{result: v.result(e.now(), Stale), reason: err})
	default:
		endAll(b.seats, verdict{result: result{err: err}})
	}
	return true
}
