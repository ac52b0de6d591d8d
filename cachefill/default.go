package cachefill

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// standard is the process-wide cache of the package function Get.
var standard struct {
	mu     sync.Mutex // protects what follows
	engine *engine
	kinds  sync.Map // reflect.Type to *kind
}

// Get returns the value of key from the process-wide cache, see [Cache.Get].
// Any type will do; another type under the same key is [ErrType].
//
// The cache keeps its entries in memory, which no other server sees, until
// [SetDefault] gives it a store; it logs once that it does.
func Get[V any](ctx context.Context, key string, load Loader[V]) (V, error) {
	e, err := standardEngine()
	if err != nil {
		var zero V
		return zero, err
	}
	c := Cache[V]{engine: e, kind: standardKind[V]()}
	return c.Get(ctx, key, load)
}

// SetDefault makes s the store of the package function [Get], with the
// settings of opts, which may be nil. Codec and Clone cannot be set, since they
// are for one type: values are stored as JSON and shared. Call it when the
// program starts; a cache that was the default before is closed with ctx.
func SetDefault(ctx context.Context, s store.Cache, opts *Options[any]) error {
	if opts != nil && (opts.Codec != nil || opts.Clone != nil) {
		return errors.New("cachefill: SetDefault: Options.Codec and Options.Clone are for one type: use New")
	}
	c, err := New(s, opts)
	if err != nil {
		return err
	}
	c.engine.set.strictType = true
	standard.mu.Lock()
	old := standard.engine
	standard.engine = c.engine
	standard.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.close(ctx)
}

// standardEngine returns the default cache's engine, made now if need be.
func standardEngine() (*engine, error) {
	standard.mu.Lock()
	defer standard.mu.Unlock()
	if standard.engine != nil {
		return standard.engine, nil
	}
	c, err := New[any](memstore.New(nil), nil)
	if err != nil {
		return nil, fmt.Errorf("cachefill: making the default cache: %w", err)
	}
	c.engine.set.strictType = true
	c.engine.set.log().Warn("cachefill: the default cache is in memory, which other servers do not see; give it a store with cachefill.SetDefault")
	standard.engine = c.engine
	return standard.engine, nil
}

func standardKind[V any]() *kind {
	t := reflect.TypeFor[V]()
	if k, ok := standard.kinds.Load(t); ok {
		return k.(*kind)
	}
	k, _ := standard.kinds.LoadOrStore(t, kindOf(JSON[V]()))
	return k.(*kind)
}
