package cachefill

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// limit bounds how many loads run at once. A slot is taken before the claim,
// so that a saturated server does not sit on leases that it cannot use.
type limit struct {
	slots *semaphore.Weighted
}

func newLimit(n int) limit { return limit{semaphore.NewWeighted(int64(n))} }

// take waits in line for a slot. It reports false if ctx ended first.
func (l limit) take(ctx context.Context) bool { return l.slots.Acquire(ctx, 1) == nil }

// tryTake takes a slot if one is free.
func (l limit) tryTake() bool { return l.slots.TryAcquire(1) }

func (l limit) giveBack() { l.slots.Release(1) }
