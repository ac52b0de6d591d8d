package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// ErrFault is an error for faults that need no other.
var ErrFault = errors.New("storetest: injected fault")

// Op is a call that a faulty store has got.
type Op struct {
	// Name is the method: "Get", "Claim", "Renew", "Fill", "Yield",
	// "Delete", "Acquire", "Release", "Watch", "Announce", "Enqueue",
	// "Leave", "Put", "Expire", "GetAll", "RenewAll", "DeleteAll" or "Break".
	// "Event" is a wake-up on its way to a watch: with an Err it is lost.
	// "Change" is an announcement on its way: with an Err it is lost, and
	// says in the end that all is in doubt.
	Name string

	Key  string   // empty for a batch
	Keys []string // of a batch
}

// Fault is what happens to a call. The zero Fault lets it pass.
//
// The call waits for Delay, then until Block is closed, then fails with Err
// instead of being done. With Applied it is done first, and the fault happens
// to its reply: late, or lost although the store did it. A call that waits
// ends with its context.
type Fault struct {
	Applied bool
	Delay   time.Duration
	Block   <-chan struct{} // nil does not block
	Err     error           // nil is no failure
}

// Injector decides what happens to each call. It is called from many
// goroutines.
type Injector func(op Op) Fault

// FaultyCache puts faults in front of c. The optional interfaces of c, and
// Leaser if it is one, stay visible to store.As, with faults in front of them
// too. It is like a server behind a network, also when c is memory: its Facts
// are not Local, and a context that has ended is answered with its error.
func FaultyCache(c store.Cache, inject Injector) store.Cache {
	f := faults{inject, c}
	return &faultyCache{link{f, f.rest()}, c}
}

// FaultyLeaser is [FaultyCache] for leases.
func FaultyLeaser(l store.Leaser, inject Injector) store.Leaser {
	f := faults{inject, l}
	return &faultyLeaser{link{f, f.rest()}, l}
}

// faults is what the wrappers of one store have in common.
type faults struct {
	inject Injector
	s      any // the store itself
}

// do makes the call through the fault that the injector wants for it.
func do[T any](ctx context.Context, f faults, op Op, call func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	fault := f.inject(op)
	if !fault.Applied {
		if err := fault.happen(ctx); err != nil {
			return none, err
		}
		return call()
	}
	reply, err := call()
	if lost := fault.happen(ctx); lost != nil {
		return none, lost
	}
	return reply, err
}

// do0 is do for calls that return only an error.
func do0(ctx context.Context, f faults, op Op, call func() error) error {
	_, err := do(ctx, f, op, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// happen waits as the fault says and returns its error.
func (f Fault) happen(ctx context.Context) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Block != nil {
		select {
		case <-f.Block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return f.Err
}
