package redisstore

import (
	"context"

	"github.com/herdgate/herdgate/store"
)

// Enqueue implements [store.Queuer] in one round trip. When the turn of
// req.Token comes, the lease is handed over by whoever releases, breaks or
// leaves, or asks after it expired: the waiter need not ask again to get it,
// only to keep its place.
func (s *Store) Enqueue(ctx context.Context, req store.Request) (store.Lease, error) {
	return s.acquire(ctx, req, true)
}

// Leave implements [store.Queuer] in one round trip.
func (s *Store) Leave(ctx context.Context, req store.Request) error {
	_, err := s.run(ctx, leaveScript, call{s.leaseNames(req.Key), []any{string(req.Token[:])}})
	return err
}
