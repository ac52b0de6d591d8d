package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Guard gives out the leases of one namespace of a store. Its methods can be
// called from many goroutines. A process needs one, and closes it at its end.
type Guard struct {
	s       store.Leaser
	o       Options // resolved
	facts   store.Facts
	renewer *renewer
	lines   lines

	closing chan struct{} // closed by Close: nobody waits any longer
	dead    chan struct{} // closed when Close ends: nothing is tried again
	idle    chan struct{} // closed once closed and nothing is left

	mu     sync.Mutex // protects what follows
	closed bool
	ended  bool // Close has ended once
	busy   int  // calls, leases and goroutines
}

// New returns a guard whose leases are kept by s. A nil o means the defaults.
//
// It returns an error that names what is wrong with o, and one that wraps
// [errors.ErrUnsupported] if o demands what s cannot keep.
func New(s store.Leaser, o *Options) (*Guard, error) {
	resolved, err := o.resolved(s)
	if err != nil {
		return nil, err
	}
	return &Guard{
		s: s, o: resolved, facts: store.FactsOf(s),
		renewer: renewerOf(s),
		lines:   lines{m: make(map[string]*line)},
		closing: make(chan struct{}), dead: make(chan struct{}), idle: make(chan struct{}),
	}, nil
}

// Do runs fn while it has the lease on name. It waits for the lease like
// [Guard.Acquire], and returns its errors without running fn.
//
// fn's context is derived from ctx and is cancelled when the lease is lost;
// [FromContext] finds the lease in it. Do returns what fn returned, joined
// with the cause ([ErrLost], [ErrMaxHold]) if the lease ended before fn did:
// then another holder may have been at work. The lease is released also when
// fn panics or ends its goroutine. A release that the store does not answer
// is no error: it is tried again in the background.
func (g *Guard) Do(ctx context.Context, name string, fn func(ctx context.Context) error) (err error) {
	l, err := g.acquire(ctx, ctx, name, nil, true)
	if err != nil {
		return err
	}
	defer func() { err = l.finish(ctx, err) }()
	return fn(l.Context())
}

// Break ends the lease on name, whoever has it, and returns who had it; a zero
// Holder if nobody did. It is for operators: the holder's context is cancelled
// as soon as it hears of it, which can be too late for what it is doing.
//
// It returns an error that wraps [errors.ErrUnsupported] if the store cannot
// break leases, and [ErrUnavailable] if the store did not answer: the lease
// may be broken or not.
func (g *Guard) Break(ctx context.Context, name string) (Holder, error) {
	b, ok := store.As[store.Breaker](g.s)
	if !ok {
		return Holder{}, fmt.Errorf("guard: %T cannot break leases: %w", g.s, errors.ErrUnsupported)
	}
	if err := g.enter(); err != nil {
		return Holder{}, err
	}
	type answer struct {
		holder Holder
		err    error
	}
	answers := make(chan answer, 1)
	call, cancel := context.WithTimeoutCause(ctx, g.o.StoreTimeout, errSilent)
	defer cancel()
	go func() {
		defer g.leave()
		holder, err := b.Break(call, g.key(name))
		answers <- answer{holder, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return Holder{}, refusal(ctx, name, &line{}, unavailable(a.err))
		}
		return a.holder, nil
	case <-call.Done():
		return Holder{}, refusal(ctx, name, &line{}, context.Cause(call))
	}
}

// TakeOver breaks the lease on name and acquires it. Who has been waiting for
// it comes first, as always.
func (g *Guard) TakeOver(ctx context.Context, name string, o *AcquireOptions) (*Lease, error) {
	if _, err := g.Break(ctx, name); err != nil {
		return nil, err
	}
	return g.Acquire(ctx, name, o)
}

// Close makes the guard refuse new leases, sends away who waits with
// [ErrClosed], and waits until every lease is released. Leases can be released
// and acquired again under their own contexts meanwhile.
//
// When ctx ends first, Close cancels the contexts of the leases that are left,
// with [ErrClosed] as their cause, stops renewing them and returns ctx's
// error. They are not released, since their holders may be at work still: they
// run out at the store.
func (g *Guard) Close(ctx context.Context) error {
	g.shut()
	var err error
	select {
	case <-g.idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	for _, h := range g.renewer.of(g) {
		h.end(errShut)
	}
	g.mu.Lock()
	first := !g.ended
	g.ended = true
	g.mu.Unlock()
	if first {
		close(g.dead)
		g.renewer.disuse()
	}
	return err
}

// shut lets nobody in any more.
func (g *Guard) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	close(g.closing)
	if g.busy == 0 {
		close(g.idle)
	}
}

// enter counts a call until it leaves, unless the guard is closed. A call that
// got a lease leaves when the lease has ended.
func (g *Guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.busy++
	return nil
}

// stay counts a goroutine that works for a call or a lease, until it leaves.
func (g *Guard) stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
}

func (g *Guard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if g.busy == 0 && g.closed {
		select {
		case <-g.idle: // a lease was released after Close had ended
		default:
			close(g.idle)
		}
	}
}

// key is what name is called at the store.
func (g *Guard) key(name string) string { return g.o.Namespace + ":" + name }

// settle asks the store by f to end something, again and again until it has
// answered, until is over, or the guard is closed for good.
func (g *Guard) settle(ctx context.Context, until time.Time, f func(context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		call, cancel := context.WithTimeout(ctx, g.o.StoreTimeout)
		err := f(call)
		cancel()
		if answered(err) || time.Now().Add(pause).After(until) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-g.dead:
			return err
		}
	}
}
