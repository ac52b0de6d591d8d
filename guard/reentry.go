package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/herdgate/herdgate/internal/scope"
)

// reenter returns the lease on name that ctx belongs to, or that the scope of
// ctx has; nil if there is none. A lease that was released is none, one that
// was lost is an error: whoever goes on would believe to be protected.
func (g *Guard) reenter(ctx, parent context.Context, name string, p plan) (*Lease, error) {
	id := nameKey{g, name}
	h, scoped := inScope(ctx, id)
	if !scoped {
		h, _ = ctx.Value(id).(*hold)
	}
	if h == nil {
		return nil, nil
	}
	l, err := h.handle(parent, scoped)
	switch {
	case errors.Is(err, ErrReleased):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("guard: %q: %w", name, err)
	case p.fence && h.fence == 0:
		_ = l.Release(ctx) // ends a handle, not the lease
		return nil, fmt.Errorf("guard: %q is held without a fence: %w", name, errors.ErrUnsupported)
	case scoped:
		return l, nil
	}
	return g.adopted(ctx, l), nil
}

// inScope returns the hold that the scope of ctx has under id.
func inScope(ctx context.Context, id nameKey) (*hold, bool) {
	s, ok := scope.From(ctx)
	if !ok {
		return nil, false
	}
	found, ok := s.Find(id)
	if !ok {
		return nil, false
	}
	return found.(scoped).l.hold, true
}

// adopted returns l, for the scope of ctx to end if there is one.
func (g *Guard) adopted(ctx context.Context, l *Lease) *Lease {
	s, ok := scope.From(ctx)
	if !ok {
		return l
	}
	l.scoped = true
	if !s.Adopt(nameKey{g, l.Name()}, scoped{l}) {
		l.scoped = false // the scope is over
	}
	return l
}

// scoped is a lease as the scope sees it that ends it.
type scoped struct{ l *Lease }

func (s scoped) Release(ctx context.Context) error { return s.l.release(ctx) }
func (s scoped) Lapse()                            { s.l.hold.end(errLapsed) }
