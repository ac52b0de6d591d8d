package guard

import (
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

// timing is what the renewer knows of a hold.
type timing struct {
	lease store.Lease
	stop  time.Time // the holder is told to stop
	limit time.Time // MaxHold is over, zero if there is none
	next  time.Time // to be renewed, or tried again

	queued  bool  // due, and no call has taken it yet
	calls   int   // under way
	trouble error // what the store said to the last renewal, if it failed

	watching  chan struct{} // closed at the end, nil if nobody watches
	unwatched bool          // the watch has failed
}

// set takes over l, which the store granted or renewed. Its time counts from
// when it was asked for, which l.Expires allows for. A tenth is kept back, so
// that the holder has stopped when the lease ends at the server.
func (t *timing) set(l store.Lease, now time.Time) {
	left := max(l.Expires.Sub(now), 0)
	t.lease, t.trouble = l, nil
	t.stop = l.Expires.Add(-left / 10)
	t.next = now.Add(left / 3)
}

// over returns why the hold must end now, nil if it need not.
func (t *timing) over(now time.Time) error {
	switch {
	case !t.limit.IsZero() && !now.Before(t.limit):
		return ErrMaxHold
	case now.Before(t.stop):
		return nil
	case t.trouble != nil:
		return fmt.Errorf("%w: not renewed in time: %w", ErrLost, t.trouble)
	}
	return fmt.Errorf("%w: not renewed in time", ErrLost)
}

// due reports whether it is time to renew the lease. Besides a call that has
// not come back another one is tried, and no more.
func (t *timing) due(now time.Time) bool {
	return !t.queued && t.calls < 2 && now.Add(slack).After(t.next)
}

// wake is when the renewer has to look at the hold again.
func (t *timing) wake() time.Time {
	at := t.stop
	if !t.queued && t.calls < 2 && t.next.Before(at) {
		at = t.next
	}
	if !t.limit.IsZero() && t.limit.Before(at) {
		at = t.limit
	}
	return at
}
