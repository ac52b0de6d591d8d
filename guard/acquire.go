package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Acquire waits for the lease on name: until ctx ends, and no longer than
// Wait. Waiters of one process get it in the order in which they came; where
// the store has a queue, those of all processes do. The lease does not end
// with ctx, only its values are kept: release it.
//
// Acquired with the context of a lease on the same name, it is that lease
// once more, and ends with the last Release. If that lease is lost, the error
// is its cause.
//
// It returns, all wrapped:
//   - a [*HeldError], which matches [ErrHeld], after Wait;
//   - ctx's error if ctx ended, beside the *HeldError if somebody held it;
//   - [ErrUnavailable] if the store did not answer within StoreTimeout, or
//     only with errors;
//   - [errors.ErrUnsupported] if o demands a fence and the store gives none;
//   - [ErrClosed].
func (g *Guard) Acquire(ctx context.Context, name string, o *AcquireOptions) (*Lease, error) {
	return g.acquire(ctx, context.WithoutCancel(ctx), name, o, true)
}

// TryAcquire is Acquire without waiting: if somebody has the lease it returns
// a [*HeldError] at once.
func (g *Guard) TryAcquire(ctx context.Context, name string, o *AcquireOptions) (*Lease, error) {
	return g.acquire(ctx, context.WithoutCancel(ctx), name, o, false)
}

// plan is what one call asks for.
type plan struct {
	key          string
	ttl, maxHold time.Duration
	wait         time.Duration // zero: any
	fence        bool
}

func (g *Guard) plan(name string, o *AcquireOptions) (plan, error) {
	if o == nil {
		o = &AcquireOptions{}
	}
	if err := o.validate(); err != nil {
		return plan{}, err
	}
	p := plan{
		key:     g.key(name),
		ttl:     or(o.TTL, g.o.TTL),
		maxHold: or(o.MaxHold, g.o.MaxHold),
		wait:    or(o.Wait, g.o.Wait),
		fence:   g.o.Fence || o.Fence,
	}
	if p.fence && !g.facts.Fences {
		if !g.o.BestEffort {
			return plan{}, fmt.Errorf("guard: %q: %T gives no fences: %w", name, g.s, errors.ErrUnsupported)
		}
		p.fence = false
	}
	return p, nil
}

// acquire gets a lease whose context is derived from parent.
func (g *Guard) acquire(ctx, parent context.Context, name string, o *AcquireOptions, wait bool) (*Lease, error) {
	p, err := g.plan(name, o)
	if err != nil {
		return nil, err
	}
	if l, err := g.reenter(ctx, parent, name, p); l != nil || err != nil {
		return l, err
	}
	if ctx.Err() != nil {
		return nil, refusal(ctx, name, &line{}, context.Cause(ctx))
	}
	if err := g.enter(); err != nil {
		return nil, err
	}
	defer g.leave()
	if !wait {
		p.wait = 0
	}
	call, leave := callContext(ctx, p.wait)
	defer leave(nil)

	c := &contender{g: g, name: name, leave: leave, line: &line{}, patient: wait, out: make(chan result)}
	if wait {
		if c.line, c.queued, err = g.lines.take(call, g.closing, name); err != nil {
			return nil, refusal(ctx, name, c.line, err)
		}
		defer g.lines.pass(name)
		// Who was before us may have been of our scope.
		if l, err := g.reenter(ctx, parent, name, p); l != nil || err != nil {
			return l, err
		}
	}
	c.req = store.Request{Key: p.key, Token: store.NewToken(), TTL: p.ttl, Note: g.note(o), Fence: p.fence}
	lease, err := c.contend(call)
	if err != nil {
		return nil, refusal(ctx, name, c.line, err)
	}
	return g.granted(ctx, parent, name, p, lease)
}

// callContext returns the context of one call. Whatever ends the call before
// it has a lease is its cause.
func callContext(ctx context.Context, wait time.Duration) (context.Context, context.CancelCauseFunc) {
	call, leave := context.WithCancelCause(ctx)
	if wait <= 0 {
		return call, leave
	}
	timer := time.AfterFunc(wait, func() { leave(errWaitOver) })
	return call, func(cause error) {
		timer.Stop()
		leave(cause)
	}
}

// granted makes a Lease of what the store granted.
func (g *Guard) granted(ctx, parent context.Context, name string, p plan, lease store.Lease) (*Lease, error) {
	g.stay() // until the hold has ended
	h := &hold{g: g, name: name, fence: lease.Fence, grant: lease.Grant, ttl: p.ttl}
	if p.maxHold > 0 {
		h.limit = time.Now().Add(p.maxHold)
	}
	g.renewer.add(h, lease)
	l, err := h.handle(parent, false)
	if err != nil {
		return nil, fmt.Errorf("guard: %q: %w", name, err)
	}
	return g.adopted(ctx, l), nil
}

// refusal is the error of a call that ended by cause without a lease.
func refusal(ctx context.Context, name string, l *line, cause error) error {
	held := l.held.Load()
	switch {
	case ctx.Err() != nil && errors.Is(cause, context.Cause(ctx)):
		cause = endOf(ctx)
		if held != nil {
			cause = fmt.Errorf("%w (%w)", cause, held)
		}
	case errors.Is(cause, errWaitOver) && held == nil:
		cause = &HeldError{Key: name}
	case errors.Is(cause, errWaitOver):
		cause = held
	case errors.Is(cause, errSilent):
		cause = unavailable(cause)
	}
	return fmt.Errorf("guard: %q: %w", name, cause)
}

// endOf returns the error of a context that has ended, with its cause.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
