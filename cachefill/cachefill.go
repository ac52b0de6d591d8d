package cachefill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Loader computes the value of a key.
//
// It runs on a context of its own, with the values of the context of the call
// that brought it, but neither its cancellation nor its deadline; it ends with
// Options.LoadTimeout. Inside, [SetTTL], [NoStore] and [Old] act on the load.
//
// Returning an error that is [ErrNotFound] or [ErrNotModified] is an answer.
// Any other error is shared with everybody who waits, on every server.
type Loader[V any] func(ctx context.Context) (V, error)

// Cache keeps computed values in a store and sees to it that only one server
// computes a missing one. It is safe for use by many goroutines. Values that
// it returns are shared: they are read-only, unless Options.Clone is set.
type Cache[V any] struct {
	engine *engine
	kind   *kind
	clone  func(V) V
}

// New returns a cache that keeps its entries in s. opts may be nil. The error
// names the option that cannot be meant.
//
// Close the cache to drain its loads. The store stays open: it is the
// caller's.
func New[V any](s store.Cache, opts *Options[V]) (*Cache[V], error) {
	if s == nil {
		return nil, errors.New("cachefill: New: store is nil: use memstore.New for one in memory")
	}
	set, err := opts.settle(store.FactsOf(s))
	if err != nil {
		return nil, err
	}
	if opts == nil {
		opts = new(Options[V])
	}
	codec := opts.Codec
	if codec == nil {
		codec = JSON[V]()
	}
	e, err := newEngine(s, set)
	if err != nil {
		return nil, err
	}
	return &Cache[V]{engine: e, kind: kindOf(codec), clone: opts.Clone}, nil
}

// Get returns the value of key. If there is none that is fresh enough, one
// server runs load; the others wait for its result or, within Options.Stale,
// get the older value at once. Callers get a loaded value a moment before the
// store has it.
//
// The errors are those of load; [ErrNotFound]; a [*LoadError] while a failed
// key cools down; [ErrBusy], [ErrLoadTimeout], [ErrRecursive], [ErrType],
// [ErrUnavailable], [ErrClosed]; or ctx.Err(), if ctx ended first. A
// panic of load reaches the caller who brought it.
func (c *Cache[V]) Get(ctx context.Context, key string, load Loader[V]) (V, error) {
	if v, ok := c.engine.near.hit(key); ok && !c.engine.isEnded.Load() {
		if v, ok := v.(V); ok {
			return c.own(v), nil
		}
	}
	r, err := c.fetch(ctx, key, load)
	return r.Value, err
}

// Fetch is [Cache.Get] and tells what happened.
func (c *Cache[V]) Fetch(ctx context.Context, key string, load Loader[V]) (Result[V], error) {
	return c.fetch(ctx, key, load)
}

func (c *Cache[V]) fetch(ctx context.Context, key string, load Loader[V]) (Result[V], error) {
	if load == nil {
		return Result[V]{Outcome: Failed}, ErrNilLoader
	}
	return c.result(key, c.engine.fetch(ctx, call{key: key, kind: c.kind, load: load}))
}

// Peek returns the value of key if there is one that may be served, fresh or
// within Options.Stale, and [ErrMiss] otherwise. It never loads or waits for a
// load.
func (c *Cache[V]) Peek(ctx context.Context, key string) (Result[V], error) {
	return c.result(key, c.engine.fetch(ctx, call{key: key, kind: c.kind}))
}

// Refresh loads key now, even if its value is fresh, and returns the new
// value. Others are served the older one meanwhile, within Options.Stale. The
// load begins after the call did. The errors are those of Get.
func (c *Cache[V]) Refresh(ctx context.Context, key string, load Loader[V]) (V, error) {
	if load == nil {
		var zero V
		return zero, ErrNilLoader
	}
	if err := c.engine.expire(ctx, key); err != nil {
		var zero V
		return zero, err
	}
	r, err := c.result(key, c.engine.fetch(ctx, call{key: key, kind: c.kind, load: load, fresh: true}))
	return r.Value, err
}

// Set stores value under key, fresh for Options.TTL. A load of the key that
// is under way elsewhere will not replace it. It returns [store.ErrTooLarge]
// for a value that the store refuses, and [ErrUnavailable] if the store did
// not answer: the older value may then still be there.
func (c *Cache[V]) Set(ctx context.Context, key string, value V) error {
	return c.engine.put(ctx, key, c.kind, value)
}

// Expire marks the value of key stale: within Options.Stale it is still served
// while one load replaces it. A load that began before does not make it fresh.
// It returns [ErrUnavailable] if the store did not answer.
func (c *Cache[V]) Expire(ctx context.Context, key string) error {
	return c.engine.expire(ctx, key)
}

// Invalidate removes the values of the keys. A reader that starts after it
// returned nil never gets an older value, on any server (a near cache on
// another server aside, for Options.NearTTL at most); a load that began before
// is not stored.
//
// When the store does not answer in time, Invalidate returns an error that
// matches [ErrUnavailable] and goes on trying in the background until it
// succeeds or the cache is closed; each attempt is an [InvalidateRetried]
// event.
func (c *Cache[V]) Invalidate(ctx context.Context, keys ...string) error {
	return c.engine.invalidate(ctx, keys)
}

// Stats returns what the cache has counted since it was made.
func (c *Cache[V]) Stats() Stats { return c.engine.counters.stats() }

// Close refuses new calls with [ErrClosed], waits until the loads that run are
// done and stored, and ends everything that runs in the background. If ctx ends
// first, the remaining loads are cancelled, their leases given up, and Close
// returns an error that says how many there were. Closing twice is harmless.
func (c *Cache[V]) Close(ctx context.Context) error { return c.engine.close(ctx) }

// result turns what the engine found into the caller's type.
func (c *Cache[V]) result(key string, r result) (Result[V], error) {
	out := Result[V]{Outcome: r.outcome, Age: max(r.age, 0)}
	if r.err != nil {
		if !errors.Is(r.err, ErrNotFound) {
			out.Outcome = Failed
		}
		return out, r.err
	}
	v, ok := r.value.(V)
	if !ok && r.value != nil {
		out.Outcome = Failed
		return out, fmt.Errorf("%w %q: have %T, want %s", ErrType, key, r.value, c.kind.name)
	}
	out.Value = c.own(v)
	return out, nil
}

// own returns the value that the caller gets.
func (c *Cache[V]) own(v V) V {
	if c.clone == nil {
		return v
	}
	return c.clone(v)
}

// call is one caller's question to the engine.
type call struct {
	key   string
	kind  *kind
	load  loader // nil: only look
	fresh bool   // nothing but a fresh value will do
	start time.Time
}

// loader is a Loader of any type.
type loader interface {
	loadAny(ctx context.Context) (any, error)
}

func (l Loader[V]) loadAny(ctx context.Context) (any, error) { return l(ctx) }
