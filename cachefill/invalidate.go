package cachefill

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// retryLast is the widest gap between attempts to invalidate.
const retryLast = 5 * time.Second

// retries are the keys that could not be invalidated yet.
type retries struct {
	mu      sync.Mutex // protects what follows
	keys    map[string]struct{}
	running bool
}

// overtake clears what the process keeps of the keys. It returns the flights
// that are under way, whose loads the change of the store will overtake.
func (e *engine) overtake(keys []string) (doomed []*flight) {
	for _, key := range keys {
		sh := e.shardOfKey(key)
		sh.mu.Lock()
		sh.epoch++
		e.near.remove(key)
		if sl := sh.slots[key]; sl != nil && sl.flight != nil {
			doomed = append(doomed, sl.flight)
		}
		sh.mu.Unlock()
	}
	return doomed
}

// overtaken clears what readers have put near since, and lets nobody wait for
// the doomed flights any more. A flight for a key in failed must not store what
// it loads: the store could not be told to refuse it.
func (e *engine) overtaken(keys, failed []string, doomed []*flight) {
	for _, key := range failed {
		sh := e.shardOfKey(key)
		sh.mu.Lock()
		if sl := sh.slots[key]; sl != nil && sl.flight != nil {
			sl.flight.void = true
		}
		sh.mu.Unlock()
	}
	for _, key := range keys {
		sh := e.shardOfKey(key)
		sh.mu.Lock()
		sh.epoch++
		e.near.remove(key)
		if sl := sh.slots[key]; sl != nil {
			sl.quiet = quiet{}
		}
		sh.mu.Unlock()
	}
	for _, f := range doomed {
		f.sh.mu.Lock()
		f.detach()
		f.sh.mu.Unlock()
	}
}

func (e *engine) invalidate(ctx context.Context, keys []string) error {
	if e.isEnded.Load() {
		return ErrClosed
	}
	if len(keys) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	doomed := e.overtake(keys)
	failed, err := e.deleteAll(ctx, keys)
	e.overtaken(keys, failed, doomed)
	if len(failed) > 0 {
		e.retryLater(failed)
	}
	return err
}

// deleteAll deletes the keys in the store. It returns those that it could not
// delete, and why.
func (e *engine) deleteAll(ctx context.Context, keys []string) (failed []string, err error) {
	byShard := make(map[string][]string)
	for _, key := range keys {
		shard := e.shardOf(key)
		byShard[shard] = append(byShard[shard], key)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, keys := range byShard {
		wg.Go(func() {
			f, ferr := e.deleteShard(ctx, keys)
			mu.Lock()
			defer mu.Unlock()
			failed, err = append(failed, f...), errors.Join(err, ferr)
		})
	}
	wg.Wait()
	return failed, err
}

// deleteShard deletes keys that share a server, in one call.
func (e *engine) deleteShard(ctx context.Context, keys []string) (failed []string, err error) {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = e.storeKey(key)
	}
	errs, err := ask(ctx, e, e.writing(keys[0]), keys[0], e.set.budget, nil, func(ctx context.Context) ([]error, error) {
		errs := store.DeleteAll(ctx, e.store, names)
		return errs, errors.Join(errs...)
	})
	if err == nil {
		return nil, nil
	}
	for i, key := range keys {
		if errs == nil || errs[i] != nil {
			failed = append(failed, key)
		}
	}
	return failed, err
}

// retryLater goes on invalidating in the background.
func (e *engine) retryLater(keys []string) {
	r := &e.retries
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = make(map[string]struct{})
	}
	for _, key := range keys {
		r.keys[key] = struct{}{}
	}
	if !r.running {
		r.running = true
		e.finish(e.retry)
	}
}

// retry invalidates what is left over until nothing is. Close makes it try a
// last time, at once.
func (e *engine) retry() {
	for gap, last := retryFirst, false; !last; gap = min(2*gap, retryLast) {
		last = !e.rest(gap)
		keys := e.retries.pending()
		if len(keys) == 0 {
			return
		}
		doomed := e.overtake(keys)
		failed, err := e.deleteAll(background, keys)
		e.overtaken(keys, failed, doomed)
		e.retries.settle(keys, failed)
		for _, key := range keys {
			e.set.onEvent(Event{Kind: InvalidateRetried, Key: key, Err: err})
		}
	}
}

// pending returns the keys to retry. If there are none, the retrier ends.
func (r *retries) pending() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]string, 0, len(r.keys))
	for key := range r.keys {
		keys = append(keys, key)
	}
	r.running = len(keys) > 0
	return keys
}

// settle takes the tried keys off the list, except those that failed again.
func (r *retries) settle(tried, failed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range tried {
		delete(r.keys, key)
	}
	for _, key := range failed {
		r.keys[key] = struct{}{}
	}
}

// expire marks the value of key stale.
func (e *engine) expire(ctx context.Context, key string) error {
	return e.write(ctx, key, func(ctx context.Context) error {
		return store.Expire(ctx, e.store, e.storeKey(key))
	})
}

// put stores a value that was not loaded.
func (e *engine) put(ctx context.Context, key string, k *kind, value any) error {
	fresh := e.set.shorten(e.set.ttl)
	data, err := e.encode(k, value, nil, header{created: e.now(), fresh: fresh})
	if err != nil {
		return err
	}
	keep := e.set.ttl + e.set.grace(nil)
	return e.write(ctx, key, func(ctx context.Context) error {
		return store.Put(ctx, e.store, e.storeKey(key), store.NewToken(), data, keep)
	})
}

// write changes the entry of key without a lease.
func (e *engine) write(ctx context.Context, key string, f func(context.Context) error) error {
	if e.isEnded.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	keys := []string{key}
	doomed := e.overtake(keys)
	_, err := ask(ctx, e, e.writing(key), key, e.set.budget, nil, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f(ctx)
	})
	var failed []string
	if err != nil {
		failed = keys
	}
	e.overtaken(keys, failed, doomed)
	return err
}
