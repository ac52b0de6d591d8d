package cachefill

import (
	"context"
	"time"
)

// slot is what this process has under way for one key.
//
// Callers come in batches. A look is one Get for all callers who were there
// when it was sent; those who come later wait for the next look. A flight is
// one claim, and the load or the wait that follows, for all callers who were
// there when the claim was sent. So no caller gets what was read, or was being
// loaded, before it came (law 3):
//
//  1. caller A joins, its claim is sent
//  2. an invalidation by anybody returns
//  3. caller B joins: it must not get A's value
//
// B waits until the flight ends and then looks again. TestLaw3LateCallerLooksAgain
// pins it.
type slot struct {
	looking *batch  // its Get is under way
	next    *batch  // for the next look
	late    *batch  // for a look after the flight
	flight  *flight // its claim is under way, or what follows it
	quiet   quiet   // why nothing is claimed for a while
}

// quiet is what this process remembers of a key that is not to be loaded.
type quiet struct {
	failure *failure
	until   time.Time
}

func (q quiet) active() bool { return q.failure != nil && time.Now().Before(q.until) }

func (sl *slot) idle() bool {
	return sl.looking == nil && sl.next == nil && sl.late == nil && sl.flight == nil && !sl.quiet.active()
}

// batch is callers who can be answered together.
type batch struct {
	seats  []*seat
	lead   *leader       // brings the loader; nil if nobody did
	urgent bool          // one of them holds up a load
	spent  time.Duration // of the store budget, by who has spent most
}

// leader is the call whose loader a flight runs.
type leader struct {
	ctx  context.Context
	load loader
	kind *kind
	seat *seat
}

// gone reports whether the leader does not wait any longer: its context ended,
// or it was answered otherwise.
func (l *leader) gone() bool {
	select {
	case <-l.seat.done:
		return true
	default:
		return l.ctx.Err() != nil
	}
}

// seat is where callers wait who joined at about the same time and want the
// same: one channel and one timer for all of them.
type seat struct {
	done     chan struct{} // closed when verdict is set
	verdict  verdict
	n        int // callers that have not left; protected by the shard
	fresh    bool
	waited   bool // for a flight that could not answer it
	deadline time.Time
	timer    *time.Timer // runs once a flight is waited for
	flight   *flight     // whose claim answers the seat; nil until then
	slot     *slot
	sh       *shard
}

// verdict is how waiting at a seat ended.
type verdict struct {
	result result
	reason error         // why result is an older value, for who accepts none
	leader *leader       // whose loader made the result, nil if nobody's here
	thrown *thrown       // what that loader threw, for the leader
	again  bool          // everybody but the leader looks again
	alone  bool          // everybody but the leader loads for themselves
	over   bool          // Wait is over
	spent  time.Duration // of the store budget
}

func newSeat(sl *slot, fresh bool, deadline time.Time) *seat {
	return &seat{done: make(chan struct{}), fresh: fresh, deadline: deadline, slot: sl}
}

// join finds the caller a seat, and starts a look if that is its way to an
// answer. me is set for who leads the batch.
func (e *engine) join(ctx context.Context, c call, urgent bool, spent time.Duration) (s *seat, me *leader) {
	sh := e.shardOfKey(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sl := sh.slots[c.key]
	if sl == nil {
		sl = new(slot)
		sh.slots[c.key] = sl
	}
	b := sl.batchFor(c)
	if b.lead == nil {
		me = &leader{ctx: ctx, load: c.load, kind: c.kind}
		b.lead = me
	}
	b.urgent = b.urgent || urgent
	b.spent = max(b.spent, spent)
	s = b.seat(sl, sh, c.fresh, c.start.Add(e.set.wait), e.set.wait/16)
	s.n++
	if me != nil {
		me.seat = s
	}
	if b == sl.late {
		e.arm(s, c.key)
		if urgent {
			sl.flight.hurry()
		}
	}
	if b == sl.next && sl.looking == nil {
		e.startLook(c.key, sh, sl)
	}
	return s, me
}

// batchFor returns the batch in which a new caller can be answered soonest.
func (sl *slot) batchFor(c call) *batch {
	f := sl.flight
	switch {
	case f == nil, f.servable && !c.fresh:
		return batchAt(&sl.next)
	default:
		// What a look could find, the flight finds too: a claim that has
		// not been sent collects the late callers before it goes.
		return batchAt(&sl.late)
	}
}

func batchAt(b **batch) *batch {
	if *b == nil {
		*b = new(batch)
	}
	return *b
}

// seat returns the seat of b for a caller with this deadline: the last one, if
// its own deadline is at most slack earlier.
func (b *batch) seat(sl *slot, sh *shard, fresh bool, deadline time.Time, slack time.Duration) *seat {
	for i := len(b.seats) - 1; i >= 0; i-- {
		s := b.seats[i]
		if s.fresh == fresh && !s.deadline.After(deadline) && deadline.Sub(s.deadline) < slack {
			return s
		}
		if len(b.seats)-i > 4 { // callers that looped have odd deadlines
			break
		}
	}
	s := newSeat(sl, fresh, deadline)
	s.sh = sh
	b.seats = append(b.seats, s)
	return s
}

// merge takes over the callers of other.
func (b *batch) merge(other *batch) {
	if other == nil {
		return
	}
	b.seats = append(b.seats, other.seats...)
	b.urgent = b.urgent || other.urgent
	b.spent = max(b.spent, other.spent)
	if b.lead == nil {
		b.lead = other.lead
	}
}

// leave takes a caller whose context ended off its seat. Joining and leaving
// are one critical section with ending a flight: nobody joins a dying one.
func (e *engine) leave(s *seat) {
	s.sh.mu.Lock()
	defer s.sh.mu.Unlock()
	s.n = max(s.n-1, 0)
	e.desert(s)
}

// desert cancels the flight that s waited for if all of its callers have left,
// and that is wanted. The shard is locked.
func (e *engine) desert(s *seat) {
	if f := s.engaged(); f != nil && !f.background && e.set.cancel && f.callers() == 0 {
		f.detach()
		f.abandon()
	}
}

// engaged returns the flight that s waits for.
func (s *seat) engaged() *flight {
	if s.flight != nil {
		return s.flight
	}
	return s.slot.flight
}

// arm starts the timer that ends the wait at s. The shard is locked.
func (e *engine) arm(s *seat, key string) {
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(s.deadline), func() { e.waitOver(s, key) })
	}
}

// waitOver ends the wait at s, with an older value if there is one.
func (e *engine) waitOver(s *seat, key string) {
	s.sh.mu.Lock()
	defer s.sh.mu.Unlock()
	v := verdict{over: true, result: result{err: ErrBusy}}
	if f := s.engaged(); f != nil && f.old.servesOnError() && !s.fresh {
		v = verdict{result: f.old.result(e.now(), Stale)}
	}
	s.end(v)
	s.n = 0
	e.desert(s)
}

// end answers the callers at s, unless they have been answered. The shard is
// locked.
func (s *seat) end(v verdict) {
	select {
	case <-s.done:
		return
	default:
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.fresh && v.reason != nil {
		v.result = result{err: v.reason}
	}
	s.verdict = v
	close(s.done)
}

func endAll(seats []*seat, v verdict) {
	for _, s := range seats {
		s.end(v)
	}
}

// forget drops the slot once nothing is under way. The shard is locked.
func (sh *shard) forget(key string, sl *slot) {
	if sl.idle() && sh.slots[key] == sl {
		delete(sh.slots, key)
	}
}
