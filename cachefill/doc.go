// Package cachefill computes a value once for a whole fleet of servers.
//
// Start with [Get], or with [New] and [Cache.Get] for a cache with its own
// settings:
//
//	report, err := reports.Get(ctx, "home", func(ctx context.Context) (Report, error) {
//		return buildReport(ctx, db) // slow
//	})
//
// While the value is fresh, every server reads it from the store. When it has
// gone cold, one server gets the lease to compute it; the others wait for that
// result or, if Options.Stale allows it, serve the older value at once. A
// failure is shared too: nobody queues up to fail one after another.
//
// One caveat: the lease makes a second load rare, not impossible. A server
// that was paused longer than its lease, or a store that forgot it, costs one
// extra load, never an older value after an invalidation. Work that must not
// happen twice belongs to package guard, with a fence.
package cachefill
