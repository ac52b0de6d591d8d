// Package guard gives one holder at a time the right to act on a name, among
// all goroutines of all servers that share a store: check and then write,
// run a job once, talk to a machine that takes one caller.
//
// Make a [Guard] with [New], and start with [Guard.Do]:
//
//	err := g.Do(ctx, "invoice:42", func(ctx context.Context) error {
//		return send(ctx, invoice) // ctx ends when the lease is lost
//	})
//
// [Guard.Acquire] and [Guard.TryAcquire] return the [Lease] itself, for work
// that does not fit into a function. A lease is renewed in the background for
// as long as its process lives and does not release it. If the process dies,
// the next one gets the lease when its time to live is over (Options.TTL).
// Waiting is fair, and costs the store little however many callers wait: one
// of each process asks, the others stand behind it.
//
// # What a lease does not promise
//
// A lease is a promise about time, and a process can be stopped at any moment
// for longer than that: by its garbage collector, a debugger, a moving virtual
// machine. When it goes on, its context is cancelled at once, but a write that
// was on its way still arrives, while somebody else has the lease. A server
// that loses its data (a failover of Redis, an eviction by memcached) forgets
// leases too. So a lease alone saves work; it does not guarantee exclusion.
//
// A fence does: ask for it (Options.Fence), send [Lease.Fence] along with each
// write, and let the database refuse a fence that is smaller than the greatest
// it has seen:
//
//	UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?
//
// Martin Kleppmann explains why in "How to do distributed locking" (2016).
//
// # When the store does not answer
//
// Then there is no lease: Acquire returns [ErrUnavailable] after StoreTimeout.
// Leases that are held already are renewed again and again until a tenth of
// their time is left; then their contexts are cancelled, before the store can
// give the lease to anybody else.
package guard
