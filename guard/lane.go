package guard

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	// batch is how many leases one call of a store renews, if it can.
	batch = 64

	// maxCalls bounds the calls under way at one server, so that a driver
	// that never returns costs a few goroutines and not one per try.
	maxCalls = 8
)

// lane is what is due at one server.
type lane struct {
	queue map[time.Duration][]*hold // by time to live
	calls int                       // goroutines that empty the queue
}

// enqueue has h renewed as soon as a call is free for it.
func (r *renewer) enqueue(h *hold) {
	shard := store.ShardOf(r.s, h.key())
	ln := r.lanes[shard]
	if ln == nil {
		ln = &lane{queue: make(map[time.Duration][]*hold)}
		r.lanes[shard] = ln
	}
	h.queued = true
	ln.queue[h.ttl] = append(ln.queue[h.ttl], h)
	if ln.calls < maxCalls {
		ln.calls++
		go r.work(shard, ln)
	}
}

// work renews what is queued for one server, batch after batch.
func (r *renewer) work(shard string, ln *lane) {
	for {
		holds, leases := r.dequeue(shard, ln)
		if len(holds) == 0 {
			return
		}
		r.renew(holds, leases)
		for _, h := range holds {
			h.g.leave()
		}
	}
}

// dequeue takes a batch of one time to live from the queue. An empty one ends
// the goroutine that works on it, and the lane with the last of them.
func (r *renewer) dequeue(shard string, ln *lane) (holds []*hold, leases []store.Lease) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for ttl, queue := range ln.queue {
		for len(queue) > 0 && len(holds) < r.batch {
			h := queue[0]
			queue = queue[1:]
			h.queued = false
			if !r.has(h) {
				continue
			}
			h.calls++
			h.next = now.Add(h.patience())
			h.g.stay()
			holds, leases = append(holds, h), append(leases, h.lease)
			r.wakeBy(h.wake())
		}
		ln.queue[ttl] = queue
		if len(queue) == 0 {
			delete(ln.queue, ttl)
		}
		if len(holds) > 0 {
			return holds, leases
		}
	}
	if ln.calls--; ln.calls == 0 {
		delete(r.lanes, shard)
	}
	return nil, nil
}

// renew asks the store once, and takes over what it says. An answer that comes
// late counts too: the lease's time is that of the question.
func (r *renewer) renew(holds []*hold, leases []store.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), holds[0].patience())
	defer cancel()
	renewed, errs := store.RenewAll(ctx, r.s, leases, holds[0].ttl)

	now := time.Now()
	var lost []*hold
	r.mu.Lock()
	for i, h := range holds {
		h.calls--
		switch {
		case !r.has(h):
			continue
		case errors.Is(errs[i], store.ErrLost):
			lost = append(lost, h)
			continue
		case errs[i] != nil:
			h.trouble = errs[i]
			h.next = now.Add(min(h.ttl/20, time.Second/2))
		case renewed[i].Expires.After(h.lease.Expires):
			h.set(renewed[i], now)
		}
		r.wakeBy(h.wake())
	}
	r.mu.Unlock()
	for _, h := range lost {
		h.end(ErrLost)
	}
}
