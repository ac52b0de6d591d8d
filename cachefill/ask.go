package cachefill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

var (
	errNoReply = errors.New("no reply in time")
	errOpen    = errors.New("not asked: it did not answer lately")
)

// background is the context of what is asked on nobody's behalf.
var background = context.Background()

// answered reports whether err is something that a working store says.
func answered(err error) bool {
	return err == nil || errors.Is(err, store.ErrMiss) || errors.Is(err, store.ErrLost) ||
		errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrHeld)
}

// unavailable turns what a store that does not work said into an error for
// callers.
func unavailable(err error) error {
	if answered(err) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// ask makes one call to the store and waits for at most budget, and not past
// ctx, whatever the driver does. What the call returns after that goes to late,
// which may be nil. Errors match ErrUnavailable unless the store answered or
// ctx ended.
func ask[T any](ctx context.Context, e *engine, op shardOp, key string, budget time.Duration, late func(T, error), f func(context.Context) (T, error)) (T, error) {
	if e.facts.Local {
		return f(ctx)
	}
	var zero T
	if err := e.admitted(op, key); err != nil {
		return zero, err
	}
	if budget <= 0 {
		return zero, unavailable(errNoReply)
	}
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply)
	gaveUp := make(chan struct{})
	start := time.Now()
	e.finish(func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
		defer cancel()
		value, err := f(limited)
		select {
		case replies <- reply{value, err}:
		case <-gaveUp:
			if late != nil {
				late(value, err)
			}
		}
	})
	timer := time.NewTimer(budget)
	defer timer.Stop()
	var r reply
	select {
	case r = <-replies:
	case <-timer.C:
		close(gaveUp)
		r.err = errNoReply
	case <-ctx.Done():
		close(gaveUp)
		return zero, ctx.Err()
	}
	e.replied(op, key, r.err, time.Since(start))
	return r.value, unavailable(r.err)
}

// admitted returns an error if the breaker keeps the store from being asked.
// If a probe is due, it starts one, which no caller waits for.
func (e *engine) admitted(op shardOp, key string) error {
	b := e.breakers.of(op)
	ok, probe := b.allow()
	if probe && !e.spawn(func() { e.probe(b, op, key) }) {
		b.probed(true)
	}
	if !ok {
		return unavailable(errOpen)
	}
	return nil
}

// replied notes how a call to the store ended.
func (e *engine) replied(op shardOp, key string, err error, took time.Duration) {
	failed := !answered(err)
	if failed {
		e.counters.storeFailures.Add(1)
		e.set.onEvent(Event{Kind: StoreFailed, Key: key, Err: err, Took: took})
	}
	if e.breakers.of(op).record(failed) {
		e.set.onEvent(Event{Kind: StoreBreaker, Key: key, Err: unavailable(err)})
	}
}

// probe asks a store whose breaker is open once more: a plain read, or a claim
// that is given up at once, since a server can be able to read but not to
// write.
func (e *engine) probe(b *breaker, op shardOp, key string) {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), e.set.budget)
	defer cancel()
	go func() { done <- e.probeCall(ctx, op, key) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = errNoReply
	}
	if b.probed(!answered(err)) {
		e.set.onEvent(Event{Kind: StoreBreaker, Key: key})
	}
}

func (e *engine) probeCall(ctx context.Context, op shardOp, key string) error {
	if !op.write {
		_, err := e.store.Get(ctx, e.storeKey(key))
		return err
	}
	a, err := e.store.Claim(ctx, e.request(key, store.NewToken(), store.Token{}, 0))
	if err != nil || a.State != store.Granted {
		return err
	}
	return e.store.Yield(ctx, a.Lease, a.Failure)
}

// reading and writing name the breaker of key.
func (e *engine) reading(key string) shardOp { return shardOp{shard: e.shardOf(key)} }
func (e *engine) writing(key string) shardOp { return shardOp{shard: e.shardOf(key), write: true} }

func (e *engine) shardOf(key string) string {
	if !e.sharded {
		return ""
	}
	return store.ShardOf(e.store, e.storeKey(key))
}
