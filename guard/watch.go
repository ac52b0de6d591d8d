package guard

import (
	"context"
	"time"

	"github.com/herdgate/herdgate/store"
)

// renewOrWatch queues h for its renewal. Where the store has watches it is
// watched first, and queued when the watch is live, or has failed. A watch that
// failed is tried again with the next renewals.
func (r *renewer) renewOrWatch(h *hold, now time.Time) {
	if !r.watches || h.watching != nil {
		r.enqueue(h)
		return
	}
	h.watching = make(chan struct{})
	h.g.stay()
	go r.watch(h, h.watching)
	if h.unwatched {
		r.enqueue(h)
		return
	}
	h.next = now.Add(h.patience())
}

// watch ends h as soon as somebody else ended its lease. Once the watch is
// live the lease is renewed, lest it ended just before:
// TestBreakBeforeTheHolderWatches.
func (r *renewer) watch(h *hold, over <-chan struct{}) {
	defer h.g.leave()
	events, stop := watchKey(context.Background(), r.s, h.key(), h.patience())
	defer stop()
	r.watched(h, events != nil)
	for events != nil {
		select {
		case <-over:
			return
		case e := <-events:
			switch e.Grant {
			case h.grant:
				h.end(ErrLost)
				return
			case 0: // look again
				r.watched(h, true)
			}
		}
	}
}

// watched notes whether the watch of h is live, and has h renewed: at once if
// it is, and if it is not for the first time. Later, other tries to watch come
// with a renewal anyway.
func (r *renewer) watched(h *hold, live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.has(h) {
		return
	}
	first := !h.unwatched
	if h.unwatched = !live; h.unwatched {
		h.watching = nil
	}
	if (live || first) && !h.queued {
		r.enqueue(h)
	}
}

// watchKey watches key, and gives up if that takes longer than patience. The
// context of a watch lives until stop.
func watchKey(ctx context.Context, s store.Leaser, key string, patience time.Duration) (<-chan store.Event, func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, cancel)
	events, stop := store.Watch(ctx, s, key)
	timer.Stop()
	return events, func() { stop(); cancel() }
}
