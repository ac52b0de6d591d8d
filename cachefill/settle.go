package cachefill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/herdgate/herdgate/store"
)

// landed turns the end of a load into answers for the callers, and into an
// entry or a failure for the fleet.
func (f *flight) landed(out loaded, in *inside) {
	f.giveSlotBack()
	if errors.Is(out.err, ErrNotModified) && in.hasOld {
		out.value, out.err = in.old, nil
	}
	f.e.set.onEvent(Event{Kind: LoadEnded, Key: f.key, Err: out.failure(), Took: out.took})
	ttl, hasTTL, noStore := in.said()
	switch {
	case out.thrown != nil:
		f.threw(out.thrown)
	case out.err != nil && !errors.Is(out.err, ErrNotFound):
		f.failedHere(out.err)
	case noStore:
		f.madePrivate(out)
	default:
		if !hasTTL {
			ttl = f.e.set.ttl
			if out.err != nil {
				ttl = f.e.set.notFoundTTL
			}
		}
		f.made(out, ttl)
	}
}

// made answers with what the load made, and then stores it. Who came after
// the claim, but before the fill was sent, is answered by the fill: the lease
// was still ours then, so nothing was invalidated since.
func (f *flight) made(out loaded, ttl time.Duration) {
	answer := verdict{result: result{value: out.value, err: out.err, outcome: Waited}, leader: f.lead}
	data, err := f.encode(out, ttl)
	f.finishPresent(answer)
	switch {
	case err != nil:
		f.e.notStored(f.key, err)
		_ = f.yieldFor(kindTooLarge, err) // it is retried
	case f.local:
		f.keepNear(out)
	case ttl+f.e.set.grace(out.err) <= 0:
		_ = f.yieldFor(kindTooLarge, errNoTime) // it is retried
	default:
		f.fill(data, answer, out, ttl)
	}
}

// errNoTime is why a value is not kept whose time to live is over at once.
var errNoTime = errors.New("cachefill: no time to live")

// grace is for how long a value is kept after its time to live. An absence
// that is not to be remembered is not kept at all.
func (s *settings) grace(absent error) time.Duration {
	if absent != nil && s.notFoundTTL == 0 {
		return 0
	}
	return max(s.stale, s.staleIfError)
}

// fill stores data under the lease.
func (f *flight) fill(data []byte, answer verdict, out loaded, ttl time.Duration) {
	late, epoch, void := f.sealLate()
	if void {
		endAll(late, verdict{again: true})
		_ = f.e.yield(f.key, f.lease, store.Failure{}) // an invalidation overtook the load
		return
	}
	keep := ttl + f.e.set.grace(out.err)
	patience := time.AfterFunc(f.e.set.budget, func() { f.tooSlow(late) })
	err := f.e.fillOnce(f.key, f.lease, data, keep)
	kept := err == nil
	if err != nil {
		err = f.notFilled(err, data, keep)
	}
	patience.Stop()
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if kept && epoch == f.sh.epoch {
		f.e.near.put(f.key, stored{state: stateFresh, value: out.value, err: out.err, created: f.e.now()}, ttl)
	}
	if err != nil {
		answer = verdict{again: true, spent: f.spent}
	}
	endAll(late, answer)
}

// tooSlow lets nobody wait longer for a fill than the store budget.
func (f *flight) tooSlow(late []*seat) {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	endAll(late, verdict{again: true, spent: f.e.set.budget})
	f.detach()
}

// notFilled sees to a fill that did not succeed. It returns nil if the lease
// was ours all the same, which the end of it proves as well as a fill does.
func (f *flight) notFilled(err error, data []byte, keep time.Duration) error {
	switch {
	case errors.Is(err, store.ErrLost):
		f.lose()
	case errors.Is(err, store.ErrTooLarge):
		f.e.notStored(f.key, err)
		return f.yieldFor(kindTooLarge, err)
	default:
		f.e.notStored(f.key, err)
		f.e.finish(func() { // the others wait for it
			f.e.persist(func() error { return f.e.fillOnce(f.key, f.lease, data, keep) })
		})
	}
	return err
}

// sealLate takes over who has come since the claim, for the fill to answer.
func (f *flight) sealLate() (late []*seat, epoch uint64, void bool) {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if f.slot.flight == f && f.slot.late != nil {
		late = f.slot.late.seats
		for _, s := range late {
			s.flight = f
		}
		f.slot.late = nil
	}
	return late, f.sh.epoch, f.void
}

// fillOnce gives the store time, since a large value takes it.
func (e *engine) fillOnce(key string, l store.Lease, data []byte, keep time.Duration) error {
	_, err := ask(background, e, e.writing(key), key, e.set.lease/2, nil, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.store.Fill(ctx, l, data, keep)
	})
	return err
}

// encode returns the stored form of what was loaded.
func (f *flight) encode(out loaded, ttl time.Duration) ([]byte, error) {
	if f.local {
		return nil, nil
	}
	return f.e.encode(f.lead.kind, out.value, out.err, header{
		grant:   f.lease.Grant,
		created: f.e.now(),
		fresh:   f.e.set.shorten(ttl),
		took:    out.took,
	})
}

// encode returns the stored form of a value, or of its absence.
func (e *engine) encode(k *kind, value any, absent error, h header) ([]byte, error) {
	h.codec, h.typ = k.codec, k.name
	if absent != nil {
		h.flags |= flagNotFound
		return h.encode(nil, 0)
	}
	payload, err := k.encode(value)
	if err != nil {
		return nil, err
	}
	return h.encode(payload, e.set.compressAbove)
}

// keepNear keeps what was loaded without the store for a moment, so that the
// process does not load it again for every batch of callers.
func (f *flight) keepNear(out loaded) {
	if f.alone || out.err != nil {
		return
	}
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if !f.void {
		f.e.near.put(f.key, stored{state: stateFresh, value: out.value, created: f.e.now()}, f.e.set.ttl)
	}
}

func (e *engine) notStored(key string, err error) {
	e.counters.notStored.Add(1)
	e.set.onEvent(Event{Kind: NotStored, Key: key, Err: err})
}

// madePrivate gives the value to the caller whose loader made it. The others
// run their own loads at once, side by side.
func (f *flight) madePrivate(out loaded) {
	f.sh.mu.Lock()
	f.stayQuiet(&failure{Kind: kindPrivate}, f.e.set.uncacheable)
	f.answerPresent(verdict{result: result{value: out.value, err: out.err, outcome: Waited}, leader: f.lead, alone: true})
	f.sh.mu.Unlock()
	_ = f.yieldFor(kindPrivate, nil) // it is retried
}

// yieldFor tells the fleet that the key's value cannot be kept.
func (f *flight) yieldFor(kind string, err error) error {
	failed := &failure{Kind: kind}
	if err != nil {
		failed = f.e.set.failureOf(kind, err, 0)
	}
	return f.giveFailure(failed, f.e.set.uncacheable, f.e.set.uncacheable)
}

// failedHere shares a failed load with everybody who waits for it.
func (f *flight) failedHere(err error) {
	f.e.counters.loadErrors.Add(1)
	kind := kindOfError(err, f.lead.ctx.Err())
	failed := f.e.set.failureOf(kind, err, f.failures)
	f.share(failed, f.failed(err))
}

// threw gives what the loader threw to the caller who brought it.
func (f *flight) threw(t *thrown) {
	f.e.counters.loadErrors.Add(1)
	err := t.err()
	f.e.set.onEvent(Event{Kind: LoadPanicked, Key: f.key, Err: fmt.Errorf("%w\n%s", err, t.stack)})
	if f.lead.gone() { // nobody is there to get it
		f.e.set.log().Error("cachefill: loader panicked and its caller had left", slog.String("key", f.key),
			slog.Any("error", err), slog.String("stack", string(t.stack)))
	}
	failed := f.e.set.failureOf(kindPanic, err, f.failures)
	v := f.failed(f.e.set.errOf(failed, 0))
	v.leader, v.thrown = f.lead, t
	f.share(failed, v)
}

// share answers the present callers with v and tells the fleet. A failure
// that is forgiven is the leader's alone: the others look again.
//
// The process that failed stays quiet for twice the cool-down, so that a
// server that is broken leaves the next try to another one.
func (f *flight) share(failed *failure, v verdict) {
	coolDown := f.e.set.coolDownAfter(failed, f.old.servesOnError())
	v.again = failed.forgiven() && v.result.err != nil
	quiet := 2 * coolDown
	if f.e.facts.Local || f.local {
		quiet = coolDown
	}
	f.sh.mu.Lock()
	f.answerPresent(v)
	f.sh.mu.Unlock()
	_ = f.giveFailure(failed, coolDown, quiet) // it is retried
}

// giveFailure ends the lease with a failure, which this process remembers for
// the time quiet.
func (f *flight) giveFailure(failed *failure, coolDown, quiet time.Duration) error {
	f.sh.mu.Lock()
	f.stayQuiet(failed, quiet)
	f.sh.mu.Unlock()
	if f.local {
		return nil
	}
	err := f.e.yield(f.key, f.lease, failed.store(coolDown))
	if errors.Is(err, store.ErrLost) {
		f.lose()
	}
	return err
}
