package cachefill

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// flight is one process's way to a new value of a key: it asks for the lease,
// and then loads, or waits for who does, or hears why nobody may.
type flight struct {
	e    *engine
	key  string
	sh   *shard
	slot *slot
	lead *leader
	old  stored // what the look found wanting
	rush chan struct{}

	servable   bool // callers are served old meanwhile
	background bool // begun for nobody in particular
	local      bool // loads without a lease and stores nothing
	alone      bool // for one caller only
	urgent     bool // needs no slot: a caller holds up a load that has one
	hasSlot    bool

	token       store.Token
	lease       store.Lease
	seen        store.Token   // version that the claim names as wanting
	answer      *store.Answer // what the look saw of a claim, for the first round
	unreachable error         // why the store is not to be asked
	failures    int           // failed loads in a row before this one
	repeated    bool          // the claim was refused before
	began       time.Time
	polls       int
	spent       time.Duration // of the store budget

	abandoned chan struct{} // closed when every caller has left

	// Protected by the shard:
	epoch     uint64  // of the shard when the claim was sent
	present   []*seat // who the claim, once sent, answers
	soft      bool    // Options.SoftTimeout is over
	void      bool    // an invalidation overtook it: nothing may be stored
	lost      bool    // its lease was ended by somebody else
	isRushed  bool
	isDropped bool
}

// newFlight returns a flight that lead's loader would serve. v is what the
// look found.
func newFlight(e *engine, key string, sh *shard, sl *slot, lead *leader, v stored) *flight {
	return &flight{e: e, key: key, sh: sh, slot: sl, lead: lead, old: v, seen: v.version, token: store.NewToken(),
		began: time.Now(), epoch: sh.epoch, rush: make(chan struct{}), abandoned: make(chan struct{})}
}

// run brings the flight to its end.
func (f *flight) run() {
	defer f.end()
	if err := f.unreachable; err != nil {
		f.degrade(err)
		return
	}
	if f.local {
		f.gather()
		f.loadHere()
		return
	}
	events, stop := f.watch()
	defer stop()
	for f.round(events) {
		if f.local { // the entry is of a newer format
			f.loadHere()
			return
		}
	}
}

// round claims once and follows the answer. It reports whether to claim again.
func (f *flight) round(events <-chan store.Event) (again bool) {
	a, err := f.claim()
	if err != nil {
		f.degrade(err)
		return false
	}
	switch a.State {
	case store.Found:
		return f.found(a.Entry)
	case store.Granted:
		f.lease = a.Lease
		if last := decodeFailure(a.Failure.Data); last != nil && !last.uncacheable() {
			f.failures = last.Count
		}
		f.load(events)
		return false
	case store.Held:
		f.giveSlotBack()
		f.repeated = true
		return f.await(a.Holder, events)
	case store.Failed:
		f.failedElsewhere(a.Failure)
		return false
	}
	f.degrade(errors.New("cachefill: the store answered a claim with state " + a.State.String()))
	return false
}

// claim asks for the lease once there is a slot for the load. Callers who come
// after it was sent are answered by a later look.
func (f *flight) claim() (store.Answer, error) {
	if f.answer != nil {
		a := *f.answer
		f.answer = nil
		return a, nil
	}
	if !f.takeSlot() {
		return store.Answer{}, ErrClosed
	}
	f.seal()
	r := f.e.request(f.key, f.token, f.seen, f.old.took)
	r.Repeated = f.repeated
	start := time.Now()
	a, err := ask(background, f.e, f.e.writing(f.key), f.key, f.e.set.budget-f.spent, f.disown, func(ctx context.Context) (store.Answer, error) {
		return f.e.store.Claim(ctx, r)
	})
	if err != nil || !f.repeated { // polling a holder is waiting for the holder
		f.spent += time.Since(start)
	}
	if err != nil && !errors.Is(err, errOpen) {
		f.e.finish(func() { f.e.withdraw(f.key, r) })
	}
	return a, err
}

// disown gives up a lease that was granted after nobody waited for the reply.
func (f *flight) disown(a store.Answer, err error) {
	if err == nil && a.State == store.Granted {
		ctx, cancel := context.WithTimeout(context.Background(), f.e.set.lease)
		defer cancel()
		_ = f.e.store.Yield(ctx, a.Lease, store.Failure{}) // it expires otherwise
	}
}

// found makes use of an entry that the claim or a push brought. It reports
// whether to claim again, naming that one as wanting too.
func (f *flight) found(entry store.Entry) (again bool) {
	v := f.e.read(f.key, entry, f.lead.kind)
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	switch v.state {
	case stateFresh:
		if f.epoch == f.sh.epoch && v.err == nil {
			f.e.near.put(f.key, v, v.left)
		}
		f.answerPresent(verdict{result: v.result(f.e.now(), Waited)})
		return false
	case stateOtherType:
		f.answerPresent(verdict{result: result{err: v.err}})
		return false
	case stateStale:
		f.servable = true
		f.answerContent(verdict{result: v.result(f.e.now(), Stale)})
	case stateNewer:
		f.local = true
	}
	f.old, f.seen = v, v.version
	return true
}

// failedElsewhere answers with a failure that is cooling down.
func (f *flight) failedElsewhere(sf store.Failure) {
	failed := decodeFailure(sf.Data)
	if failed == nil { // written by another version: the cool-down holds anyway
		failed = &failure{Kind: kindError, Text: "unknown"}
	}
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	f.stayQuiet(failed, sf.CoolDown)
	switch {
	case failed.Kind == kindPrivate:
		f.answerPresent(verdict{alone: true, spent: f.spent})
	case failed.Kind == kindTooLarge:
		f.answerPresent(verdict{again: true, spent: f.spent})
	default:
		f.answerPresent(f.failed(f.e.set.errOf(failed, sf.CoolDown)))
	}
}

// failed is the verdict of err, or of the older value that may be served
// instead. The shard is locked.
func (f *flight) failed(err error) verdict {
	if f.old.servesOnError() {
		return verdict{result: f.old.result(f.e.now(), Stale), reason: err, spent: f.spent}
	}
	return verdict{result: result{err: err}, leader: f.lead, spent: f.spent}
}

// degrade answers without the store.
func (f *flight) degrade(err error) {
	if errors.Is(err, ErrClosed) || !f.awaited() {
		f.finishPresent(verdict{result: result{err: err}})
		return
	}
	switch f.e.set.degrade {
	case FailFast:
		f.finishPresent(verdict{result: result{err: unavailable(err)}})
		return
	case ServeHeld:
		if v, ok := f.e.heldNear(f.key); ok {
			f.finishPresent(verdict{result: v.result(f.e.now(), Degraded), reason: unavailable(err)})
			return
		}
	}
	f.unreachable = err
	if errors.Is(err, errOpen) {
		f.gather()
	}
	f.loadHere()
}

// gatherTime is for how long a local load waits for company. While the store
// is asked, callers gather by themselves; here nothing is asked, and of a
// hundred who come at once, or were woken at once, many would be late.
const gatherTime = 250 * time.Microsecond

func (f *flight) gather() {
	if f.alone {
		return
	}
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.e.closing:
	}
}

// heldNear returns what the near cache holds of key, as long as it may be
// served instead of an error.
func (e *engine) heldNear(key string) (stored, bool) {
	v, _, ok := e.near.held(key)
	if !ok {
		return stored{}, false
	}
	age := e.now().Sub(v.created)
	v.state = e.set.rate(e.set.ttl-age, false)
	return v, v.state != stateMiss
}

// loadHere loads without a lease: nothing is stored.
func (f *flight) loadHere() {
	f.local = true
	if !f.takeSlot() {
		f.finishPresent(verdict{result: result{err: ErrClosed}})
		return
	}
	f.seal()
	f.load(nil)
}

// takeSlot waits for a slot of the load limit. It reports false once closing.
// A flight that a slot holder waits for starts at once: the holder's slot is
// one for both, and waiting for another could wait for itself.
func (f *flight) takeSlot() bool {
	if f.hasSlot || f.urgent {
		return true
	}
	if f.e.limit.tryTake() {
		f.hasSlot = true
		return true
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-f.rush:
		case <-f.abandoned:
		case <-f.e.closing:
		case <-stop:
		}
		cancel()
	}()
	f.hasSlot = f.e.limit.take(ctx)
	select {
	case <-f.e.closing:
		return false
	default:
		return f.hasSlot || f.isUrgent()
	}
}

func (f *flight) giveSlotBack() {
	if f.hasSlot {
		f.hasSlot = false
		f.e.limit.giveBack()
	}
}

func (f *flight) isUrgent() bool {
	select {
	case <-f.rush:
		f.urgent = true
	default:
	}
	return f.urgent
}
