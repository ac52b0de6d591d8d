package store

import (
	"context"
	"time"
)

// Event tells how a lease on a watched key ended. It is a hint: it can be
// lost, late or repeated. The zero Event says "look again".
type Event struct {
	// Grant is the lease that ended, zero if unknown. Who waits for another
	// grant must not use Entry or Failure.
	Grant uint64

	// Entry is what the lease was filled with, if it was small enough to
	// travel along. Its Version is zero otherwise.
	Entry Entry

	// Failure is how the lease was yielded, if with a failure.
	Failure Failure

	// Lease is granted to the receiver out of the queue, see [Queuer]. Who
	// did not ask with its token ignores it.
	Lease Lease
}

// Watcher is implemented by stores that tell waiting processes at once when a
// lease ends.
type Watcher interface {
	// Watch returns a channel of the events on key. It is live when Watch
	// returns: the caller asks (again) after it, so that no end of a lease
	// falls between question and watch. The channel keeps only the newest
	// event for a slow reader and is never closed. The holder of a lease is
	// told too when somebody else ended it. stop must be called; it does not
	// wait.
	Watch(ctx context.Context, key string) (events <-chan Event, stop func(), err error)
}

// Watch watches key if the store can. Otherwise, and if the subscription
// fails, it returns a nil channel, which is never ready: the caller's select
// beside its poll timer needs no second path.
func Watch(ctx context.Context, s any, key string) (events <-chan Event, stop func()) {
	w, ok := As[Watcher](s)
	if !ok {
		return nil, func() {}
	}
	events, stop, err := w.Watch(ctx, key)
	if err != nil {
		return nil, func() {}
	}
	return events, stop
}

// Queuer is implemented by stores that grant a released lease to whoever has
// waited longest.
type Queuer interface {
	// Enqueue is Acquire, except that a refused request takes a place in the
	// key's queue. When its turn comes, the lease is granted to it and its
	// Watch receives an Event with Lease set. That lease runs for
	// [QueueTTL] at most until it is renewed, so that a waiter that died
	// holds up the others no longer. Asked again with the same token, it
	// returns the lease if it has been granted, and keeps its place
	// otherwise. A place that is not asked for again within [QueueTTL]
	// may be dropped.
	Enqueue(ctx context.Context, req Request) (Lease, error)

	// Leave gives up the place of req.Token in the queue of req.Key, or
	// releases the lease if it was granted in the meantime.
	Leave(ctx context.Context, req Request) error
}

// QueueTTL is the longest time for which a lease granted out of a queue runs
// before its first renewal.
const QueueTTL = time.Second

// Change says that an entry ended out of turn. It is a hint: it can be late or
// repeated, but is only lost with All following.
type Change struct {
	Key string
	All bool // some may have been missed: whatever was read before is in doubt
}

// Announcer is implemented by stores that tell every process which entries
// ended out of turn, so that what processes keep of them can be dropped.
type Announcer interface {
	// Announce calls f for every entry that any process ends by Delete, Put
	// or Expire, until stop is called; a Fill or Yield may be told too. It is
	// live when it returns. ctx bounds the call, not what f is told after it.
	// f must return soon and call neither the store nor stop. stop does not
	// wait for the server.
	//
	// It returns an error that wraps [errors.ErrUnsupported] if the servers
	// that the store was made for cannot announce.
	Announce(ctx context.Context, f func(Change)) (stop func(), err error)
}
