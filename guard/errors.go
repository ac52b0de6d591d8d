package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/herdgate/herdgate/store"
)

var (
	// ErrHeld says that somebody else has the lease. The error in hand wraps
	// a [*HeldError], which says who.
	ErrHeld = store.ErrHeld

	// ErrLost says that the lease ended before it was released: it could
	// not be renewed in time, or somebody ended it by force. Another holder
	// may be at work.
	ErrLost = store.ErrLost

	// ErrMaxHold says that the lease was held for longer than MaxHold. It
	// matches [ErrLost] too.
	ErrMaxHold = fmt.Errorf("guard: held for longer than MaxHold: %w", ErrLost)

	// ErrReleased is the cause of a lease's context after its release.
	ErrReleased = errors.New("guard: lease released")

	// ErrUnavailable says that the store did not answer within StoreTimeout,
	// or only with errors. There is no lease then.
	ErrUnavailable = errors.New("guard: store unavailable")

	// ErrClosed says that the guard was closed.
	ErrClosed = errors.New("guard: closed")
)

// HeldError is the [ErrHeld] that says who holds the lease. Its Key is the
// name that was asked for; its Holder is zero if the store has not said who.
type HeldError = store.HeldError

// Holder is who has a lease: its note, and for how long at most.
type Holder = store.Holder

// Note says who holds a lease, since when and why.
type Note = store.Note

var (
	errWaitOver = errors.New("guard: waited for longer than Wait") // the cause of a call's context
	errSilent   = errors.New("no answer in time")                  // ditto
	errLate     = errors.New("the lease was over when the answer came")
	errLapsed   = fmt.Errorf("guard: left to lapse: %w", ErrLost)
	errShut     = fmt.Errorf("%w: %w", ErrClosed, ErrLost) // the cause of leases that outlived Close
)

// unavailable wraps what the store said last. The end of a context is shown
// and not wrapped: it was not the caller's.
func unavailable(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func isLost(err error) bool { return errors.Is(err, ErrLost) }
