package guard

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// giveBack releases the lease of h at the store, and waits for the answer for
// StoreTimeout. If h was lost, the store is told in case it does not know, and
// nobody waits.
func (g *Guard) giveBack(ctx context.Context, h *hold, lost error) error {
	lease, ctx := g.renewer.remove(h), context.WithoutCancel(ctx)
	if lost != nil {
		g.stay() // the hold itself has left
	}
	if g.facts.Local { // calls do not wait
		defer g.leave()
		err := g.tell(ctx, h.name, lease)
		if lost != nil {
			return lost
		}
		return err
	}
	told := make(chan error, 1)
	go func() {
		defer g.leave()
		told <- g.tell(ctx, h.name, lease)
	}()
	if lost != nil {
		return lost
	}
	timer := time.NewTimer(g.o.StoreTimeout)
	defer timer.Stop()
	select {
	case err := <-told:
		return err
	case <-timer.C:
		return unavailable(errSilent)
	}
}

// tell releases a lease at the store, again and again until the store has
// answered or the lease is over.
//
// ErrLost means that the lease had ended before, unless an earlier try was not
// answered: 1. the release is done and its reply is lost; 2. it is tried
// again; 3. the store says ErrLost: TestLaw11LostReplyOfARelease.
func (g *Guard) tell(ctx context.Context, name string, lease store.Lease) error {
	tries := 0
	err := g.settle(ctx, lease.Expires, func(ctx context.Context) error {
		tries++
		return g.s.Release(ctx, lease)
	})
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, ErrLost):
		g.o.Logger.WarnContext(ctx, "guard: a lease could not be released and is left to lapse", "name", name, "error", err)
		return unavailable(err)
	case tries > 1:
		return nil
	}
	return ErrLost
}
