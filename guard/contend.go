package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	firstPause = 5 * time.Millisecond // before a question without an answer is asked again
	maxPause   = 200 * time.Millisecond
)

// contender is one call that asks the store for a lease.
//
// It asks in a goroutine, so that no driver can hold its caller, and with one
// token, so that whatever was granted is found again. The caller may leave at
// any time; then the goroutine gives back what it got or might have got.
type contender struct {
	g       *Guard
	name    string
	req     store.Request
	line    *line
	patient bool // waits until it is granted
	queued  bool // others of the process were before us: the name is wanted
	leave   context.CancelCauseFunc
	out     chan result

	trouble atomic.Pointer[error] // what came last instead of an answer

	enqueued bool      // has asked for a place in the store's queue
	unsure   bool      // a question was not answered
	asked    time.Time // last
}

type result struct {
	lease store.Lease
	err   error
}

// contend returns the lease, or why there is none: what the store said, or the
// cause of the call's end.
func (c *contender) contend(call context.Context) (store.Lease, error) {
	if c.g.facts.Local { // calls do not wait
		lease, err := c.obtain(call)
		if err != nil {
			c.withdraw(call, lease, err)
		}
		return lease, err
	}
	c.g.stay()
	go c.run(call)
	select {
	case r := <-c.out:
		return r.lease, r.err
	case <-call.Done():
		return store.Lease{}, context.Cause(call)
	case <-c.g.closing:
		return store.Lease{}, ErrClosed
	}
}

// run hands the result to the caller, who either takes it or has left: out is
// not buffered. A lease that nobody takes is given back.
func (c *contender) run(call context.Context) {
	defer c.g.leave()
	lease, err := c.obtain(call)
	select {
	case c.out <- result{lease, err}:
		if err == nil {
			return
		}
	case <-call.Done():
	}
	c.withdraw(call, lease, err)
}

// obtain asks once where nobody is known to be before us, and then waits.
func (c *contender) obtain(call context.Context) (store.Lease, error) {
	if !c.queued {
		lease, err := c.ask(call, c.g.s.Acquire)
		if !c.patient || !errors.Is(err, ErrHeld) {
			return lease, err
		}
	}
	return c.wait(call)
}

// question is one that a store answers with a lease: Acquire or Enqueue.
type question func(context.Context, store.Request) (store.Lease, error)

// ask puts q until it is answered, for StoreTimeout at most. Then the caller
// is sent away, whether the driver returns or not.
func (c *contender) ask(call context.Context, q question) (store.Lease, error) {
	deadline := time.Now().Add(c.g.o.StoreTimeout)
	ctx := deadlineContext{call, deadline}
	defer c.watchdog().Stop()
	for pause := firstPause; ; pause *= 2 {
		c.asked = time.Now()
		lease, err := q(ctx, c.req)
		if err == nil && !time.Now().Before(lease.Expires) {
			err = errLate
		}
		if answered(err) {
			c.unsure = false
			c.trouble.Store(nil)
			return lease, c.noted(err)
		}
		c.unsure = true
		c.trouble.Store(&err)
		if time.Now().Add(pause).After(deadline) {
			return store.Lease{}, unavailable(err)
		}
		select {
		case <-time.After(pause):
		case <-call.Done():
			return store.Lease{}, context.Cause(call)
		}
	}
}

// watchdog sends the caller away after StoreTimeout, unless it is stopped.
func (c *contender) watchdog() *time.Timer {
	return time.AfterFunc(c.g.o.StoreTimeout, func() {
		if err := c.trouble.Load(); err != nil {
			c.leave(fmt.Errorf("%w: %w", errSilent, *err))
			return
		}
		c.leave(errSilent)
	})
}

// deadlineContext tells drivers by when it ends, for those that look at the
// deadline only. That it ends then is the watchdog's doing.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) {
	if parents, ok := c.Context.Deadline(); ok && parents.Before(c.deadline) {
		return parents, true
	}
	return c.deadline, true
}

// answered reports whether err is what the store said, and not why it is not
// known what it said.
func answered(err error) bool {
	return err == nil || errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrLost) ||
		errors.Is(err, errors.ErrUnsupported)
}

// noted keeps who holds the lease, under the name that callers know.
func (c *contender) noted(err error) error {
	var held *store.HeldError
	if !errors.As(err, &held) {
		return err
	}
	c.req.Repeated = true // from now on
	held = &store.HeldError{Key: c.name, Holder: held.Holder}
	c.line.held.Store(held)
	return held
}

// withdraw makes sure that nothing is left of a call without a lease: neither
// a lease that nobody took, nor one whose grant was not heard of, nor a place
// in the queue. Whatever the store does not answer is asked again, until it
// would have run out.
func (c *contender) withdraw(call context.Context, lease store.Lease, err error) {
	ctx := context.WithoutCancel(call)
	queue, queues := store.As[store.Queuer](c.g.s)
	until := c.asked.Add(c.req.TTL)
	switch {
	case err == nil:
		_ = c.g.tell(ctx, c.name, lease)
	case queues && (c.enqueued || c.unsure):
		_ = c.g.settle(ctx, until, func(ctx context.Context) error { return queue.Leave(ctx, c.req) })
	case c.unsure:
		// Only its token is known of the lease, if there is one. Asked for by
		// its token it is found, to be released; or somebody else's is.
		err := c.g.settle(ctx, until, func(ctx context.Context) (err error) {
			lease, err = c.g.s.Acquire(ctx, c.req)
			return err
		})
		if err == nil {
			_ = c.g.tell(ctx, c.name, lease)
		}
	}
}
