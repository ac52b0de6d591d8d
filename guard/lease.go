package guard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Lease is the right to act on a name, until it is released or lost. It is
// renewed in the background. Its methods can be called from many goroutines.
type Lease struct {
	hold   *hold
	ctx    context.Context
	cancel context.CancelCauseFunc
	scoped bool // a unit of work ends it

	once sync.Once // the release
	err  error     // its result
}

// Context returns the context to work with under the lease. It has the values
// of the context that the lease was acquired with, and is cancelled when the
// lease ends: with [ErrLost], [ErrMaxHold], [ErrReleased] or [ErrClosed] as
// its [context.Cause]. A loss is told a tenth of the TTL before the store can
// give the lease to somebody else.
//
// Acquiring the same name with this context, or one derived from it, gives
// the same lease again.
func (l *Lease) Context() context.Context { return l.ctx }

// Done is closed when the lease ends, see Context.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease is held, then the cause of its end. It asks
// the clock, so that a process that was stopped for a while knows at once.
func (l *Lease) Err() error {
	l.hold.checkClock()
	return context.Cause(l.ctx)
}

// Name returns the name that the lease is on.
func (l *Lease) Name() string { return l.hold.name }

// Fence returns a number that is greater than that of every earlier lease on
// the name, for the protected resource to refuse writes with a smaller one.
// Zero means that no fence was asked for, or that the store gives none.
func (l *Lease) Fence() uint64 { return l.hold.fence }

// Release ends the lease and lets the next one have it. It can be called
// again and then returns the same. Acquired again under its own context, a
// lease ends with the last release.
//
// The end of ctx does not keep it from being released; ctx only gives values.
// If the store does not answer within StoreTimeout, Release returns
// [ErrUnavailable] and the release is tried again in the background, until
// the lease would have run out anyway. Release returns [ErrLost] if the lease
// was lost before.
func (l *Lease) Release(ctx context.Context) error {
	if l.scoped {
		return nil
	}
	return l.release(ctx)
}

func (l *Lease) release(ctx context.Context) error {
	l.once.Do(func() {
		if err := l.hold.drop(ctx, l); err != nil {
			l.err = fmt.Errorf("guard: releasing %q: %w", l.Name(), err)
		}
	})
	return l.err
}

// finish ends the lease of a Do whose function returned err.
func (l *Lease) finish(ctx context.Context, err error) error {
	lost := l.hold.checkClock()
	if released := l.Release(ctx); isLost(released) {
		lost = released
	}
	switch {
	case !isLost(lost) || isLost(err):
		return err
	case err == nil:
		return lost
	}
	return fmt.Errorf("%w; %w", err, lost)
}

// hold is a lease as this process has it. Every Lease is a handle on one.
type hold struct {
	g     *Guard
	name  string
	grant uint64
	fence uint64
	ttl   time.Duration

	mu      sync.Mutex // protects what follows
	handles []*Lease   // to be cancelled at the end
	count   int        // of the handles that must be released
	ended   error      // why, nil while it is held

	timing // protected by the renewer's mutex
}

// key is what the name is called at the store.
func (h *hold) key() string { return h.g.key(h.name) }

// patience is how long a renewal may take before another is tried.
func (h *hold) patience() time.Duration { return h.ttl / 6 }

// handle returns a new handle on h, or the reason why h has ended. A scoped
// one need not be released.
func (h *hold) handle(parent context.Context, scoped bool) (*Lease, error) {
	if err := h.checkClock(); err != nil {
		return nil, err
	}
	l := &Lease{hold: h, scoped: scoped}
	l.ctx, l.cancel = context.WithCancelCause(leaseContext{parent, l})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		l.cancel(h.ended)
		return nil, h.ended
	}
	h.handles = append(h.handles, l)
	if !scoped {
		h.count++
	}
	return l, nil
}

// drop ends one handle, and the lease with the last of them.
func (h *hold) drop(ctx context.Context, l *Lease) error {
	h.checkClock()
	h.mu.Lock()
	ended := h.ended
	h.handles = slices.DeleteFunc(h.handles, func(other *Lease) bool { return other == l })
	h.count--
	last := h.count == 0
	if last && ended == nil {
		h.ended = ErrReleased
	}
	guests := h.handles // none, or scoped ones
	h.mu.Unlock()
	l.cancel(ErrReleased)
	if !last {
		return ended
	}
	for _, guest := range guests {
		guest.cancel(ErrReleased)
	}
	return h.g.giveBack(ctx, h, ended)
}

// end ends the lease for this process. The store is not told: what was lost is
// not ours to release, and what may still be at work must not be followed by
// another holder.
func (h *hold) end(cause error) {
	h.mu.Lock()
	if h.ended != nil {
		h.mu.Unlock()
		return
	}
	h.ended = cause
	handles := slices.Clone(h.handles)
	h.mu.Unlock()
	h.g.renewer.remove(h)
	for _, l := range handles {
		l.cancel(cause)
	}
	h.g.leave()
}

// checkClock ends the lease if its time is over, without waiting for the
// renewer, and returns why the lease ended, nil while it is held.
func (h *hold) checkClock() error {
	if cause := h.g.renewer.overdue(h); cause != nil {
		h.end(cause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// leaseContext finds the lease that a context belongs to.
type leaseContext struct {
	context.Context
	lease *Lease
}

type currentKey struct{}

// nameKey finds the lease on a name among those that a context belongs to.
// Scopes know leases by it too.
type nameKey struct {
	g    *Guard
	name string
}

func (c leaseContext) Value(key any) any {
	switch key {
	case currentKey{}:
		return c.lease
	case nameKey{c.lease.hold.g, c.lease.hold.name}:
		return c.lease.hold
	}
	return c.Context.Value(key)
}

// FromContext returns the lease that ctx belongs to, the innermost if there
// are several: what the function that Do runs can ask for its fence.
func FromContext(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(currentKey{}).(*Lease)
	return l, ok
}
