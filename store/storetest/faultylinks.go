package storetest

import (
	"context"
	"time"

	"github.com/herdgate/herdgate/store"
)

// link is one capability of a faulty store, and the way to the next.
type link struct {
	faults
	next any
}

func (l link) Unwrap() any { return l.next }

// rest returns the chain of what the store can: one link for each capability
// that it has, so that store.As finds what is there, finds nothing else, and
// meets the faults on the way.
func (f faults) rest() any {
	var next any
	if d, ok := store.As[store.Describer](f.s); ok {
		next = &describer{link{f, next}, d}
	}
	if s, ok := store.As[store.Sharder](f.s); ok {
		next = &sharder{link{f, next}, s}
	}
	if c, ok := store.As[store.Clock](f.s); ok {
		next = &clock{link{f, next}, c}
	}
	if c, ok := store.As[store.Cache](f.s); ok {
		next = &faultyCache{link{f, next}, c}
	}
	if l, ok := store.As[store.Leaser](f.s); ok {
		next = &faultyLeaser{link{f, next}, l}
	}
	if w, ok := store.As[store.Watcher](f.s); ok {
		next = &faultyWatcher{link{f, next}, w}
	}
	if a, ok := store.As[store.Announcer](f.s); ok {
		next = &faultyAnnouncer{link{f, next}, a}
	}
	if q, ok := store.As[store.Queuer](f.s); ok {
		next = &faultyQueuer{link{f, next}, q}
	}
	if p, ok := store.As[store.Putter](f.s); ok {
		next = &faultyPutter{link{f, next}, p}
	}
	if e, ok := store.As[store.Expirer](f.s); ok {
		next = &faultyExpirer{link{f, next}, e}
	}
	if b, ok := store.As[store.BatchGetter](f.s); ok {
		next = &faultyBatchGetter{link{f, next}, b}
	}
	if b, ok := store.As[store.BatchRenewer](f.s); ok {
		next = &faultyBatchRenewer{link{f, next}, b}
	}
	if b, ok := store.As[store.BatchDeleter](f.s); ok {
		next = &faultyBatchDeleter{link{f, next}, b}
	}
	if b, ok := store.As[store.Breaker](f.s); ok {
		next = &faultyBreaker{link{f, next}, b}
	}
	return next
}

// describer, sharder and clock ask no server, so nothing can happen to them.
type describer struct {
	link
	inner store.Describer
}

func (d *describer) Facts() store.Facts {
	facts := d.inner.Facts()
	facts.Local = false
	return facts
}

type sharder struct {
	link
	store.Sharder
}

type clock struct {
	link
	store.Clock
}

type faultyCache struct {
	link
	inner store.Cache
}

func (c *faultyCache) Get(ctx context.Context, key string) (store.Entry, error) {
	return do(ctx, c.faults, Op{Name: "Get", Key: key}, func() (store.Entry, error) { return c.inner.Get(ctx, key) })
}

func (c *faultyCache) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	return do(ctx, c.faults, Op{Name: "Claim", Key: req.Key}, func() (store.Answer, error) { return c.inner.Claim(ctx, req) })
}

func (c *faultyCache) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	return do(ctx, c.faults, Op{Name: "Renew", Key: l.Key}, func() (store.Lease, error) { return c.inner.Renew(ctx, l, ttl) })
}

func (c *faultyCache) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	return do0(ctx, c.faults, Op{Name: "Fill", Key: l.Key}, func() error { return c.inner.Fill(ctx, l, value, ttl) })
}

func (c *faultyCache) Yield(ctx context.Context, l store.Lease, f store.Failure) error {
	return do0(ctx, c.faults, Op{Name: "Yield", Key: l.Key}, func() error { return c.inner.Yield(ctx, l, f) })
}

func (c *faultyCache) Delete(ctx context.Context, key string) error {
	return do0(ctx, c.faults, Op{Name: "Delete", Key: key}, func() error { return c.inner.Delete(ctx, key) })
}

type faultyLeaser struct {
	link
	inner store.Leaser
}

func (l *faultyLeaser) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	return do(ctx, l.faults, Op{Name: "Acquire", Key: req.Key}, func() (store.Lease, error) { return l.inner.Acquire(ctx, req) })
}

func (l *faultyLeaser) Renew(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	return do(ctx, l.faults, Op{Name: "Renew", Key: lease.Key}, func() (store.Lease, error) { return l.inner.Renew(ctx, lease, ttl) })
}

func (l *faultyLeaser) Release(ctx context.Context, lease store.Lease) error {
	return do0(ctx, l.faults, Op{Name: "Release", Key: lease.Key}, func() error { return l.inner.Release(ctx, lease) })
}

type faultyWatcher struct {
	link
	inner store.Watcher
}

func (w *faultyWatcher) Watch(ctx context.Context, key string) (<-chan store.Event, func(), error) {
	type watch struct {
		events <-chan store.Event
		stop   func()
	}
	inner, err := do(ctx, w.faults, Op{Name: "Watch", Key: key}, func() (watch, error) {
		events, stop, err := w.inner.Watch(ctx, key)
		return watch{events, stop}, err
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	events := make(chan store.Event, 1)
	go w.forward(ctx, key, inner.events, events)
	return events, func() { cancel(); inner.stop() }, nil
}

// forward passes the events on, through the faults, until ctx ends.
func (w *faultyWatcher) forward(ctx context.Context, key string, from <-chan store.Event, to chan store.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-from:
			if w.inject(Op{Name: "Event", Key: key}).happen(ctx) != nil {
				continue // lost
			}
			select {
			case <-to: // only the newest is kept
			default:
			}
			to <- e
		}
	}
}

type faultyQueuer struct {
	link
	inner store.Queuer
}

func (q *faultyQueuer) Enqueue(ctx context.Context, req store.Request) (store.Lease, error) {
	return do(ctx, q.faults, Op{Name: "Enqueue", Key: req.Key}, func() (store.Lease, error) { return q.inner.Enqueue(ctx, req) })
}

func (q *faultyQueuer) Leave(ctx context.Context, req store.Request) error {
	return do0(ctx, q.faults, Op{Name: "Leave", Key: req.Key}, func() error { return q.inner.Leave(ctx, req) })
}

type faultyPutter struct {
	link
	inner store.Putter
}

func (p *faultyPutter) Put(ctx context.Context, key string, version store.Token, value []byte, ttl time.Duration) error {
	return do0(ctx, p.faults, Op{Name: "Put", Key: key}, func() error { return p.inner.Put(ctx, key, version, value, ttl) })
}

type faultyExpirer struct {
	link
	inner store.Expirer
}

func (e *faultyExpirer) Expire(ctx context.Context, key string) error {
	return do0(ctx, e.faults, Op{Name: "Expire", Key: key}, func() error { return e.inner.Expire(ctx, key) })
}

type faultyBatchGetter struct {
	link
	inner store.BatchGetter
}

func (b *faultyBatchGetter) GetAll(ctx context.Context, keys []string) ([]store.Entry, []error) {
	var entries []store.Entry
	errs, ok := b.batch(ctx, Op{Name: "GetAll", Keys: keys}, func() (errs []error) {
		entries, errs = b.inner.GetAll(ctx, keys)
		return errs
	})
	if !ok {
		entries = make([]store.Entry, len(keys))
	}
	return entries, errs
}

type faultyBatchRenewer struct {
	link
	inner store.BatchRenewer
}

func (b *faultyBatchRenewer) RenewAll(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Lease, []error) {
	op := Op{Name: "RenewAll"}
	for _, l := range leases {
		op.Keys = append(op.Keys, l.Key)
	}
	var renewed []store.Lease
	errs, ok := b.batch(ctx, op, func() (errs []error) {
		renewed, errs = b.inner.RenewAll(ctx, leases, ttl)
		return errs
	})
	if !ok {
		renewed = make([]store.Lease, len(leases))
	}
	return renewed, errs
}

type faultyBatchDeleter struct {
	link
	inner store.BatchDeleter
}

func (b *faultyBatchDeleter) DeleteAll(ctx context.Context, keys []string) []error {
	errs, _ := b.batch(ctx, Op{Name: "DeleteAll", Keys: keys}, func() []error { return b.inner.DeleteAll(ctx, keys) })
	return errs
}

// batch makes a call that answers each key, and reports whether the answers
// arrived. A fault happens to all of them.
func (l link) batch(ctx context.Context, op Op, call func() []error) ([]error, bool) {
	errs, err := do(ctx, l.faults, op, func() ([]error, error) { return call(), nil })
	if err == nil {
		return errs, true
	}
	errs = make([]error, len(op.Keys))
	for i := range errs {
		errs[i] = err
	}
	return errs, false
}

type faultyBreaker struct {
	link
	inner store.Breaker
}

func (b *faultyBreaker) Break(ctx context.Context, key string) (store.Holder, error) {
	return do(ctx, b.faults, Op{Name: "Break", Key: key}, func() (store.Holder, error) { return b.inner.Break(ctx, key) })
}
