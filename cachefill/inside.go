package cachefill

import (
	"context"
	"sync"
	"time"
)

// inside is what a loader reaches through its context: its own load, and the
// loads around it.
type inside struct {
	parent *inside
	engine *engine
	key    string
	old    any // the value that the load replaces
	hasOld bool

	mu      sync.Mutex // protects what the loader says
	ttl     time.Duration
	hasTTL  bool
	noStore bool
}

type insideKey struct{}

// insideOf returns the innermost load that ctx belongs to, nil if none.
func insideOf(ctx context.Context) *inside {
	in, _ := ctx.Value(insideKey{}).(*inside)
	return in
}

// loads reports whether e's key is being loaded by in or a load around it.
func (in *inside) loads(e *engine, key string) bool {
	for ; in != nil; in = in.parent {
		if in.engine == e && in.key == key {
			return true
		}
	}
	return false
}

// said returns what the loader has said about its value.
func (in *inside) said() (ttl time.Duration, hasTTL, noStore bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ttl, in.hasTTL, in.noStore
}

// SetTTL sets for how long the value that is being loaded will be fresh,
// instead of Options.TTL. Called by a loader, with its context; elsewhere it
// does nothing. A ttl of zero or less means that the value is stale at once.
func SetTTL(ctx context.Context, ttl time.Duration) {
	in := insideOf(ctx)
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ttl, in.hasTTL = max(ttl, 0), true
}

// NoStore says that the value that is being loaded is for its caller alone: it
// is neither stored nor shared with those who wait. They run their own loads,
// in parallel, and so does everybody for Options.Uncacheable. Called by a
// loader, with its context; elsewhere it does nothing.
func NoStore(ctx context.Context) {
	in := insideOf(ctx)
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.noStore = true
}

// Old returns the value that the load is to replace, for a conditional request
// to where it came from. A loader that finds it unchanged returns
// [ErrNotModified]. The value is shared and read-only. ok is false if there is
// none of type V, and outside of a loader.
func Old[V any](ctx context.Context) (v V, ok bool) {
	in := insideOf(ctx)
	if in == nil || !in.hasOld {
		return v, false
	}
	v, ok = in.old.(V)
	return v, ok
}
