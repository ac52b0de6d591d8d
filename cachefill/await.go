package cachefill

import (
	"context"
	"time"

	"github.com/herdgate/herdgate/store"
)

const (
	// A wake-up can be lost: who waits for one asks again this often.
	pollWatched = time.Second
	// Without wake-ups, the first poll and the widest spacing.
	pollFirst = 2 * time.Millisecond
	pollLast  = 250 * time.Millisecond
	// Polls get rarer with the time waited, by this part of it.
	pollGrowth = 8
)

// watch subscribes to how leases on the key end, before the first claim, so
// that no end falls between the two.
func (f *flight) watch() (events <-chan store.Event, stop func()) {
	if !f.e.watches {
		return nil, func() {}
	}
	type watching struct {
		events <-chan store.Event
		stop   func()
	}
	w, err := ask(background, f.e, f.e.reading(f.key), f.key, f.e.set.budget-f.spent,
		func(w watching, _ error) { w.stop() },
		func(ctx context.Context) (watching, error) {
			events, stop := store.Watch(ctx, f.e.store, f.e.storeKey(f.key))
			return watching{events, stop}, nil
		})
	if err != nil {
		return nil, func() {}
	}
	return w.events, w.stop
}

// await waits until the holder's lease has ended, as an event or a poll tells.
// It reports whether to claim again.
func (f *flight) await(h store.Holder, events <-chan store.Event) (again bool) {
	timer := time.NewTimer(f.pollAfter(h, events != nil))
	defer timer.Stop()
	select {
	case event := <-events:
		return f.heard(event, h)
	case <-timer.C:
		return f.background || f.awaited()
	case <-f.abandoned:
		return false
	case <-f.e.closing:
		f.finishPresent(verdict{result: result{err: ErrClosed}})
		return false
	}
}

// heard makes use of a wake-up. Only what ended the lease that the claim was
// refused for is new enough for everybody present.
func (f *flight) heard(event store.Event, h store.Holder) (again bool) {
	switch {
	case event.Grant == 0 || event.Grant != h.Grant:
		return true
	case !event.Entry.Version.IsZero():
		return f.found(event.Entry)
	case len(event.Failure.Data) > 0 && event.Failure.CoolDown > 0:
		f.failedElsewhere(event.Failure)
		return false
	}
	return f.lookAgain()
}

// lookAgain reads the entry that the holder has left, if it was too large to
// travel with the wake-up. It reports whether to claim again.
func (f *flight) lookAgain() (again bool) {
	f.seal()
	entry, err := ask(background, f.e, f.e.reading(f.key), f.key, f.e.set.budget, nil, func(ctx context.Context) (store.Entry, error) {
		return f.e.store.Get(ctx, f.e.storeKey(f.key))
	})
	if err != nil {
		return true // the claim will tell
	}
	return f.found(entry)
}

// awaited reports whether anybody waits for f.
func (f *flight) awaited() bool {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	return f.callers() > 0
}

// pollAfter is when to ask again whether the holder is done. With wake-ups it
// is a precaution; without, it follows the expected time of the load, and then
// the time that it took so far.
func (f *flight) pollAfter(h store.Holder, watched bool) time.Duration {
	longest := pollLast
	if watched {
		longest = pollWatched
	}
	if h.Left > 0 {
		longest = min(longest, max(h.Left, pollFirst))
	}
	if watched {
		return longest
	}
	f.polls++
	waited := time.Since(f.began)
	next := max(pollFirst, waited/pollGrowth)
	if left := h.Note.Expect - waited; f.polls == 1 && left > 0 {
		next = left
	}
	return min(next, longest)
}
