package cachefill

import (
	"context"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	maxRead    = 32 // keys in one round trip, at most
	maxReaders = 8  // round trips under way at a time, of a store that batches
)

// reads sends the looks to the store. A few readers are at work at a time; what
// is asked for while all of them wait for replies goes out together, in one
// round trip if the store can. So a lone look goes out at once, and many at a
// time cost the store and this process less than one by one.
type reads struct {
	e *engine

	mu      sync.Mutex // protects what follows
	byShard map[string]*readers
}

// readers are the readers of one server.
type readers struct {
	e       *engine
	op      shardOp
	busy    int     // readers at work that have not been given up
	waiting []*look // for a reader
}

func newReads(e *engine) *reads { return &reads{e: e, byShard: make(map[string]*readers)} }

// add sends l, or has it wait for a reader. It reports false once closed.
func (r *reads) add(l *look) bool {
	op := r.e.reading(l.key)
	r.mu.Lock()
	defer r.mu.Unlock()
	rs := r.byShard[op.shard]
	if rs == nil {
		rs = &readers{e: r.e, op: op}
		r.byShard[op.shard] = rs
	}
	if r.e.batches != nil && rs.busy >= maxReaders {
		rs.waiting = append(rs.waiting, l)
		return true
	}
	if !r.e.spawn(func() { r.run(rs, []*look{l}) }) {
		return false
	}
	rs.busy++
	return true
}

// run reads until no look waits.
func (r *reads) run(rs *readers, looks []*look) {
	for len(looks) > 0 {
		more, ok := rs.read(r, looks)
		if !ok {
			return // given up: another reader has taken over
		}
		looks = r.next(rs, more)
	}
}

// next returns the looks that a reader reads next; none, and it is done.
func (r *reads) next(rs *readers, more []*look) []*look {
	r.mu.Lock()
	defer r.mu.Unlock()
	rs.waiting = append(rs.waiting, more...)
	n := min(len(rs.waiting), maxRead)
	if r.e.batches == nil {
		n = min(n, 1)
	}
	if n == 0 {
		rs.busy--
		return nil
	}
	looks := append(more[:0], rs.waiting[:n]...)
	rs.waiting = append(rs.waiting[:0], rs.waiting[n:]...)
	return looks
}

// read asks the store for the keys of looks and answers them. It returns the
// looks for which more callers have gathered, and false if the store did not
// answer in time, in which case somebody else has done all that.
func (rs *readers) read(r *reads, looks []*look) (more []*look, ok bool) {
	e := rs.e
	if err := e.admitted(rs.op, looks[0].key); err != nil {
		return answerAll(looks, err), true
	}
	budget := e.set.budget
	for _, l := range looks {
		budget = min(budget, e.set.budget-l.batch.spent)
	}
	giveUp := func() {
		e.replied(rs.op, looks[0].key, errNoReply, budget)
		for _, l := range looks {
			l.batch.spent = e.set.budget
		}
		r.takeOver(rs, answerAll(looks, unavailable(errNoReply)))
	}
	var patience *time.Timer
	if !e.facts.Local {
		patience = time.AfterFunc(budget, giveUp)
	}
	start := time.Now()
	entries, errs := rs.get(looks, budget)
	if patience != nil && !patience.Stop() {
		return nil, false
	}
	took := time.Since(start)
	for i, l := range looks {
		l.batch.spent += took
		e.replied(rs.op, l.key, errs[i], took)
		if l.found(entries[i], errs[i]) {
			more = append(more, l)
		}
	}
	return more, true
}

// get reads the keys of looks, in one round trip if the store can.
func (rs *readers) get(looks []*look, budget time.Duration) ([]store.Entry, []error) {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	if len(looks) > 1 {
		keys := make([]string, len(looks))
		for i, l := range looks {
			keys[i] = rs.e.storeKey(l.key)
		}
		return rs.e.batches.GetAll(ctx, keys)
	}
	entry, err := rs.e.store.Get(ctx, rs.e.storeKey(looks[0].key))
	return []store.Entry{entry}, []error{err}
}

// takeOver starts another reader for what waits, in the place of one that the
// store does not answer.
func (r *reads) takeOver(rs *readers, more []*look) {
	if looks := r.next(rs, more); len(looks) > 0 {
		r.e.finish(func() { r.run(rs, looks) })
	}
}

// answerAll answers the looks with an error. It returns those for which more
// callers have gathered.
func answerAll(looks []*look, err error) (more []*look) {
	for _, l := range looks {
		if l.answer(stored{}, nil, err) {
			more = append(more, l)
		}
	}
	return more
}
