// Package scope is the seam between leases and units of work. A unit of work,
// a database transaction for one, puts itself into the context; a lease that
// is acquired with that context then ends with the unit of work, and not where
// its Release is written.
package scope

import "context"

// Lease is what a scope ends.
type Lease interface {
	// Release ends the lease at the store.
	Release(ctx context.Context) error

	// Lapse ends it here only: it is no longer renewed and runs out at the
	// store by itself. For a unit of work whose outcome is unknown.
	Lapse()
}

// Scope is a unit of work that owns the leases taken in it. Its methods are
// called from many goroutines.
type Scope interface {
	// Find returns the lease that was adopted under key.
	Find(key any) (Lease, bool)

	// Adopt makes the scope the one that ends l. It returns false, and does
	// nothing, if the scope has ended already.
	Adopt(key any, l Lease) bool
}

type contextKey struct{}

// With returns a context whose leases belong to s.
func With(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// Without returns a context without a scope, for work that outlives the unit
// of work it was started in: a load that others wait for.
func Without(ctx context.Context) context.Context {
	if _, ok := From(ctx); !ok {
		return ctx
	}
	return With(ctx, nil)
}

// From returns the scope of ctx, if it has one.
func From(ctx context.Context) (Scope, bool) {
	s, ok := ctx.Value(contextKey{}).(Scope)
	return s, ok
}
