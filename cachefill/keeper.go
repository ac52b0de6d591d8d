package cachefill

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// keeper keeps the lease of a load alive: it renews it at a third of its time
// to live, from a timer, until stopped. A load that ends, also by its deadline,
// stops it, so that a hung loader loses its lease.
type keeper struct {
	f     *flight
	lease store.Lease

	mu      sync.Mutex // protects what follows
	timer   *time.Timer
	stopped bool
}

func (f *flight) keepAlive() *keeper {
	k := &keeper{f: f, lease: f.lease}
	k.arm(f.e.set.lease / 3)
	return k
}

// arm sets the timer for the next renewal, unless stopped.
func (k *keeper) arm(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.timer = time.AfterFunc(d, k.renew)
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.timer.Stop()
}

// renew renews the lease once. Errors are retried until the lease is over by
// the monotonic clock.
func (k *keeper) renew() {
	f, ttl := k.f, k.f.e.set.lease
	l, err := ask(background, f.e, f.e.writing(f.key), f.key, ttl/3, nil, func(ctx context.Context) (store.Lease, error) {
		return f.e.store.Renew(ctx, k.lease, ttl)
	})
	switch {
	case err == nil:
		k.lease = l
		k.arm(ttl / 3)
	case errors.Is(err, store.ErrLost), !time.Now().Before(k.lease.Expires):
		k.lose()
	default:
		k.arm(ttl / 12)
	}
}

// lose reports the lease as lost, unless the load ended while the store was
// asked: then it was ended by the load itself.
func (k *keeper) lose() {
	k.mu.Lock()
	stopped := k.stopped
	k.mu.Unlock()
	if !stopped {
		k.f.lose()
	}
}
