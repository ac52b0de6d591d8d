package cachefill

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// retryFirst is the gap before the first repetition of a store call whose
// outcome matters to others. It doubles.
const retryFirst = 50 * time.Millisecond

// persist repeats a call about a lease that the store did not answer, for as
// long as the lease can live: it is not renewed any more.
func (e *engine) persist(call func() error) {
	deadline := time.Now().Add(e.set.lease)
	for gap := retryFirst; time.Now().Before(deadline); gap *= 2 {
		if !e.pause(gap) || !errors.Is(call(), ErrUnavailable) {
			return
		}
	}
}

// withdraw gives up a claim whose reply was lost, so that a lease that nobody
// knows of does not block the key: asked again with its token, the store finds
// the same lease.
func (e *engine) withdraw(key string, r store.Request) {
	e.persist(func() error {
		a, err := ask(background, e, e.writing(key), key, e.set.budget, nil, func(ctx context.Context) (store.Answer, error) {
			return e.store.Claim(ctx, r)
		})
		if err != nil || a.State != store.Granted {
			return err
		}
		return e.yieldOnce(key, a.Lease, store.Failure{})
	})
}

// yield ends a lease without a value. If the store does not answer, it is
// asked again in the background.
func (e *engine) yield(key string, l store.Lease, sf store.Failure) error {
	err := e.yieldOnce(key, l, sf)
	if errors.Is(err, ErrUnavailable) {
		e.finish(func() { e.persist(func() error { return e.yieldOnce(key, l, sf) }) })
	}
	return err
}

func (e *engine) yieldOnce(key string, l store.Lease, sf store.Failure) error {
	_, err := ask(background, e, e.writing(key), key, e.set.budget, nil, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.store.Yield(ctx, l, sf)
	})
	return err
}

// pause waits for d. It reports false if Close cut it short.
func (e *engine) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.killed:
		return false
	}
}

// rest waits for d, and no longer once Close has begun. It reports false then.
func (e *engine) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.closing:
		return false
	}
}
