package cachefill

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/herdgate/herdgate/store"
)

// engine is a cache of values of any type: Cache gives it types.
type engine struct {
	store    store.Cache
	facts    store.Facts
	sharded  bool              // the store spreads keys over servers
	watches  bool              // the store tells how leases end
	batches  store.BatchGetter // nil if it reads one by one
	reads    *reads
	set      settings
	note     store.Note
	limit    limit
	near     *near
	counters counters
	breakers breakers
	retries  retries
	shards   [64]shard

	closing chan struct{} // closed when Close begins
	killed  chan struct{} // closed when Close's context ended

	mu      sync.Mutex  // protects what follows
	closed  bool        // no new calls
	running int         // goroutines
	isEnded atomic.Bool // closed, for the hot path

	idle     chan struct{} // closed when running falls to zero after closing
	idleOnce sync.Once
}

// shard is a part of the keys that calls are under way for.
type shard struct {
	mu    sync.Mutex // protects slots and everything in them
	slots map[string]*slot
	epoch uint64 // raised by every invalidation of one of its keys
}

var shardSeed = maphash.MakeSeed()

func newEngine(s store.Cache, set settings) (*engine, error) {
	e := &engine{
		store:   s,
		facts:   store.FactsOf(s),
		set:     set,
		note:    store.Note{Owner: set.owner, PID: os.Getpid()},
		limit:   newLimit(set.maxLoads),
		closing: make(chan struct{}),
		killed:  make(chan struct{}),
		idle:    make(chan struct{}),
	}
	e.note.Host, _ = os.Hostname() // unknown is fine: the note is for people
	_, e.sharded = store.As[store.Sharder](s)
	_, e.watches = store.As[store.Watcher](s)
	e.batches, _ = store.As[store.BatchGetter](s)
	e.reads = newReads(e)
	for i := range e.shards {
		e.shards[i].slots = make(map[string]*slot)
	}
	var err error
	if e.near, err = newNear(set.near, set.nearTTL, &e.counters.nearHits); err != nil {
		return nil, err
	}
	if a, ok := store.As[store.Announcer](s); ok && e.near != nil {
		e.spawn(func() { e.follow(a) })
	}
	return e, nil
}

// fetch answers one call.
func (e *engine) fetch(ctx context.Context, c call) result {
	r := e.answer(ctx, c)
	if r.near && r.err == nil {
		e.counters.nearHits.add(uint64(time.Since(processStart)))
		return r
	}
	e.counters.count(r)
	return r
}

func (e *engine) answer(ctx context.Context, c call) result {
	if e.isEnded.Load() {
		return result{err: ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return result{err: err}
	}
	if !c.fresh {
		if v, current, ok := e.near.held(c.key); ok && current {
			r := v.result(e.now(), Fresh)
			r.near = true
			return r
		}
	}
	if c.load == nil {
		return e.peek(ctx, c)
	}
	in := insideOf(ctx)
	if in.loads(e, c.key) {
		return result{err: fmt.Errorf("%w: %q", ErrRecursive, c.key)}
	}
	if e.facts.Local && !c.fresh {
		if v, ok := e.glance(c); ok {
			return v.result(e.now(), Fresh)
		}
	}
	return e.await(ctx, c, in != nil)
}

// await waits with others for what the key's look or flight brings, until it
// is an answer. urgent says that the caller holds up a load.
func (e *engine) await(ctx context.Context, c call, urgent bool) result {
	c.start = time.Now()
	var spent time.Duration
	waited := false
	for {
		s, me := e.join(ctx, c, urgent, spent)
		select {
		case <-s.done:
		case <-ctx.Done():
			e.leave(s)
			return result{err: ctx.Err()}
		}
		v := s.verdict
		spent = v.spent
		mine := me != nil && me == v.leader
		switch {
		case mine && v.thrown != nil:
			v.thrown.rethrow()
		case v.over && e.set.afterWait == LoadAnyway:
			return e.loadAlone(ctx, c, false)
		case v.alone && !mine:
			return e.loadAlone(ctx, c, true)
		case v.again && !mine:
			waited = true
			continue
		case v.result.outcome == Fresh && (waited || s.waited):
			v.result.outcome = Waited
		case mine && v.result.outcome == Waited:
			v.result.outcome = Loaded
		}
		return v.result
	}
}

// loadAlone runs an own load for one caller, which nobody shares. A slot that
// is not free at once is waited for only if wait is set.
func (e *engine) loadAlone(ctx context.Context, c call, wait bool) result {
	urgent := insideOf(ctx) != nil
	if !wait && !urgent && !e.limit.tryTake() {
		return result{err: ErrBusy}
	}
	sl, sh := new(slot), e.shardOfKey(c.key)
	f := newFlight(e, c.key, sh, sl, &leader{ctx: ctx, load: c.load, kind: c.kind}, stored{})
	f.local, f.alone, f.urgent, f.hasSlot = true, true, urgent, !wait && !urgent
	deadline := c.start.Add(e.set.wait)
	if !wait { // it is over: the load's own deadline comes first
		deadline = time.Now().Add(2 * e.set.loadTimeout)
	}
	b := new(batch)
	sh.mu.Lock()
	s := b.seat(sl, sh, false, deadline, 0)
	s.n++
	f.lead.seat = s
	f.admit(b)
	sl.flight = f
	sh.mu.Unlock()
	if !e.spawn(f.run) {
		f.end()
		return result{err: ErrClosed}
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		e.leave(s)
		return result{err: ctx.Err()}
	}
	if s.verdict.thrown != nil {
		s.verdict.thrown.rethrow()
	}
	if s.verdict.result.outcome == Waited {
		s.verdict.result.outcome = Loaded
	}
	return s.verdict.result
}

// peek looks once, for a caller who brought no loader.
func (e *engine) peek(ctx context.Context, c call) result {
	entry, err := ask(ctx, e, e.reading(c.key), c.key, e.set.budget, nil, func(ctx context.Context) (store.Entry, error) {
		return e.store.Get(ctx, e.storeKey(c.key))
	})
	switch {
	case errors.Is(err, store.ErrMiss):
		return result{err: ErrMiss}
	case err != nil:
		return result{err: err}
	}
	v := e.read(c.key, entry, c.kind)
	switch v.state {
	case stateFresh:
		return v.result(e.now(), Fresh)
	case stateStale:
		return v.result(e.now(), Stale)
	case stateOtherType:
		return result{err: v.err}
	}
	return result{err: ErrMiss}
}

// glance reads a store of this process without a goroutine. It reports false
// unless it finds a value that can be served and need not be refreshed.
func (e *engine) glance(c call) (stored, bool) {
	entry, err := e.store.Get(context.Background(), e.storeKey(c.key))
	if err != nil {
		return stored{}, false
	}
	v := e.read(c.key, entry, c.kind)
	ok := v.state == stateFresh && !e.set.refreshEarly(v)
	return v, ok
}

func (e *engine) storeKey(key string) string { return e.set.namespace + ":" + key }

// now is the store's time, as well as it is known.
func (e *engine) now() time.Time {
	if e.facts.Local {
		return time.Now()
	}
	return store.Now(e.store)
}

// request is a claim for key.
func (e *engine) request(key string, token, seen store.Token, expect time.Duration) store.Request {
	note := e.note
	note.Since, note.Expect = time.Now(), expect
	return store.Request{Key: e.storeKey(key), Token: token, TTL: e.set.lease, Note: note, Seen: seen}
}

func (e *engine) shardOfKey(key string) *shard {
	return &e.shards[maphash.String(shardSeed, key)%uint64(len(e.shards))]
}

// spawn runs f in a goroutine that Close waits for. It reports false, and runs
// nothing, once Close has begun.
func (e *engine) spawn(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.goLocked(f)
	return true
}

// finish runs f in a goroutine that Close waits for, also while closing: it
// ends something that was begun.
func (e *engine) finish(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.goLocked(f)
}

func (e *engine) goLocked(f func()) {
	e.running++
	go func() {
		defer e.done()
		f()
	}()
}

func (e *engine) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	if e.closed && e.running == 0 { // again, if a call passed Close
		e.idleOnce.Do(func() { close(e.idle) })
	}
}

// close drains the loads until ctx ends, then cancels them.
func (e *engine) close(ctx context.Context) error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.isEnded.Store(true)
	if first {
		close(e.closing)
		if e.running == 0 {
			e.idleOnce.Do(func() { close(e.idle) })
		}
	}
	running := e.running
	e.mu.Unlock()

	defer e.near.close()
	select {
	case <-e.idle:
		return nil
	case <-ctx.Done():
	}
	e.kill()
	select {
	case <-e.idle:
	case <-time.After(e.set.budget): // for leases to be given up
	}
	return fmt.Errorf("cachefill: Close: %d loads or store calls were cancelled: %w", running, ctx.Err())
}

func (e *engine) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.killed:
	default:
		close(e.killed)
	}
}
