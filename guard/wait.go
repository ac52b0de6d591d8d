package guard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	// askAgain is the longest pause between two questions where the store
	// wakes us: wake-ups are hints and can be lost.
	askAgain = time.Second

	// Stores without wake-ups are polled from firstPoll to lastPoll apart;
	// to longestPoll where the holder said that it takes long.
	firstPoll   = 3 * time.Millisecond
	lastPoll    = 100 * time.Millisecond
	longestPoll = 500 * time.Millisecond
)

// wait asks until the lease is granted: after every wake-up, and now and then.
// Where the store has a queue, a wake-up can bring the lease itself.
func (c *contender) wait(call context.Context) (store.Lease, error) {
	events, stop := c.watch(call)
	defer stop()
	ask := c.g.s.Acquire
	queue, queues := store.As[store.Queuer](c.g.s)
	if queues {
		ask, c.enqueued = queue.Enqueue, true
	}
	var p pacer
	for {
		lease, err := c.ask(call, ask)
		var held *store.HeldError
		if !errors.As(err, &held) {
			return lease, err
		}
		pause := p.pause(held.Holder, events != nil, queues)
		lease, err = c.listen(call, events, pause, queues)
		if err != nil || lease.Grant != 0 {
			return lease, err
		}
	}
}

// watch watches the name, if the store can. The watch is live when the
// question is asked, so that no wake-up falls between the two.
func (c *contender) watch(call context.Context) (<-chan store.Event, func()) {
	defer c.watchdog().Stop()
	return watchKey(call, c.g.s, c.req.Key, c.g.o.StoreTimeout/2)
}

// listen returns when it is time to ask again, with the lease if an event
// brought it.
func (c *contender) listen(call context.Context, events <-chan store.Event, pause time.Duration, queues bool) (store.Lease, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case e := <-events:
			switch {
			case c.brings(e):
				return e.Lease, nil
			case queues && e.Lease.Grant != 0 && e.Lease.Token != c.req.Token:
				continue // somebody before us in the queue got it
			}
			return store.Lease{}, nil
		case <-timer.C:
			return store.Lease{}, nil
		case <-call.Done():
			return store.Lease{}, context.Cause(call)
		case <-c.g.closing:
			return store.Lease{}, ErrClosed
		}
	}
}

// brings reports whether e brings our lease. One that is about to end, since
// the event or this process was held up, is asked for instead.
func (c *contender) brings(e store.Event) bool {
	return c.enqueued && e.Lease.Grant != 0 && e.Lease.Token == c.req.Token &&
		time.Until(e.Lease.Expires) > store.QueueTTL/4
}

// pacer says for how long to wait for a wake-up before asking again.
type pacer struct {
	grant uint64 // of the holder
	last  time.Duration
}

func (p *pacer) pause(holder store.Holder, wakes, queues bool) time.Duration {
	if holder.Grant != p.grant {
		p.grant, p.last = holder.Grant, 0
	}
	pause := p.poll(holder.Note.Expect)
	switch {
	case queues:
		pause = store.QueueTTL / 2 // or the place may be dropped
	case wakes:
		pause = askAgain
	}
	if holder.Left > 0 {
		pause = min(pause, holder.Left+firstPoll)
	}
	return max(jittered(pause), time.Millisecond)
}

// poll doubles its answer from question to question while the holder is the
// same, up to an eighth of what the holder expects to need.
func (p *pacer) poll(expect time.Duration) time.Duration {
	limit := lastPoll
	if expect > 0 {
		limit = min(max(expect/8, firstPoll), longestPoll)
	}
	p.last = min(max(2*p.last, firstPoll), limit)
	return p.last
}

// jittered takes up to a quarter off d, so that waiters do not ask in step.
func jittered(d time.Duration) time.Duration {
	return d - rand.N(d/4+1)
}
