package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		for name, s := range map[string]store.Leaser{"batches": s, "one by one": &leaserOnly{s}} {
			g := open(t, s, nil)
			l := acquired(t, g, name, nil)
			time.Sleep(time.Hour)
			if err := l.Err(); err != nil {
				t.Errorf("%s: lost after an hour: %v", name, err)
			}
			released(t, l)
		}
	})
}

// TestRenewalIsBatched: any number of leases costs one timer and a call per 64
// of them at each third of their time.
func TestRenewalIsBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 1000
		var calls, renewed atomic.Int64
		s := faulty(unwatched{memstore.New(nil)}, func(op storetest.Op) storetest.Fault {
			if op.Name == "RenewAll" {
				calls.Add(1)
				renewed.Add(int64(len(op.Keys)))
			}
			return storetest.Fault{}
		})
		g, other := open(t, s, &Options{TTL: 9 * time.Second}), open(t, s, &Options{TTL: 9 * time.Second})
		var held []*Lease
		for i := range leases {
			held = append(held, acquired(t, []*Guard{g, other}[i%2], fmt.Sprint(i), nil))
		}
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if n := renewed.Load(); n != leases {
			t.Errorf("%d of %d leases were renewed", n, leases)
		}
		if n := calls.Load(); n > leases/batch+maxCalls {
			t.Errorf("%d calls", n)
		}
		for _, l := range held {
			released(t, l)
		}
	})
}

// unwatched hides that a store tells of the ends of leases.
type unwatched struct{ s *memstore.Store }

func (u unwatched) Acquire(ctx context.Context, r store.Request) (store.Lease, error) {
	return u.s.Acquire(ctx, r)
}
func (u unwatched) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	return u.s.Renew(ctx, l, ttl)
}
func (u unwatched) RenewAll(ctx context.Context, l []store.Lease, ttl time.Duration) ([]store.Lease, []error) {
	return u.s.RenewAll(ctx, l, ttl)
}
func (u unwatched) Release(ctx context.Context, l store.Lease) error { return u.s.Release(ctx, l) }

// TestLaw8HolderStopsBeforeTheLeaseEnds: errors of renewals are tried again
// until the lease's own deadline; then the context is cancelled while nobody
// else can have the lease yet.
func TestLaw8HolderStopsBeforeTheLeaseEnds(t *testing.T) {
	for name, fault := range map[string]storetest.Fault{
		"fails":            {Err: storetest.ErrFault},
		"does not answer":  {Block: make(chan struct{})},
		"answers too late": {Delay: time.Minute, Applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { holderStops(t, fault) })
		})
	}
}

func holderStops(t *testing.T, fault storetest.Fault) {
	s := memstore.New(nil)
	if fault.Block != nil {
		fault.Block = make(chan struct{}) // of this bubble
	}
	var tries atomic.Int64
	g := open(t, faulty(unwatched{s}, func(op storetest.Op) storetest.Fault {
		if op.Name != "RenewAll" {
			return storetest.Fault{}
		}
		tries.Add(1)
		return fault
	}), nil)
	start := time.Now()
	l := acquired(t, g, "x", nil)
	ends(t, l, ErrLost)
	stopped := time.Since(start)
	if tries.Load() < 3 {
		t.Errorf("only %d tries to renew", tries.Load())
	}
	if fault.Err != nil && !errors.Is(context.Cause(l.Context()), fault.Err) {
		t.Errorf("the cause %v does not say what the store said", context.Cause(l.Context()))
	}
	_, err := s.Acquire(t.Context(), store.Request{Key: "guard:x", Token: store.NewToken(), TTL: time.Second})
	wantErr(t, err, ErrHeld)
	if !fault.Applied && stopped != 9*time.Second {
		t.Errorf("stopped after %v, not a tenth before the end", stopped)
	}
	wantErr(t, l.Release(t.Context()), ErrLost)
}

// TestRenewalRecovers: an outage that is shorter than the lease costs nothing.
func TestRenewalRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := faulty(memstore.New(nil), func(op storetest.Op) storetest.Fault {
			if strings.HasPrefix(op.Name, "Renew") && down.Load() {
				return storetest.Fault{Err: storetest.ErrFault}
			}
			return storetest.Fault{}
		})
		g := open(t, s, nil)
		l := acquired(t, g, "x", nil)
		for range 10 {
			time.Sleep(5 * time.Second)
			down.Store(true)
			time.Sleep(5 * time.Second)
			down.Store(false)
		}
		if err := l.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		released(t, l)
	})
}

// TestRenewalOfOneStoreDelaysNoOther: a store that does not answer, whatever
// its driver does with contexts, loses its own leases only.
func TestRenewalOfOneStoreDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unblock := make(chan struct{})
		hung := open(t, &deaf{Leaser: memstore.New(nil), renew: unblock}, nil)
		fine := open(t, memstore.New(nil), nil)
		var lost []*Lease
		for i := range 3 * maxCalls {
			lost = append(lost, acquired(t, hung, fmt.Sprint(i), nil))
		}
		kept := acquired(t, fine, "x", nil)
		time.Sleep(time.Minute)
		if err := kept.Err(); err != nil {
			t.Errorf("lost with the other store: %v", err)
		}
		for _, l := range lost {
			ends(t, l, ErrLost)
		}
		close(unblock)
		released(t, kept)
	})
}

// TestHungServerDelaysNoOther: of the same store, some servers or some keys do
// not answer. Only their leases are lost.
func TestHungServerDelaysNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		s    func(unblock chan struct{}) store.Leaser
		hang int
	}{
		"key":    {func(c chan struct{}) store.Leaser { return &stuck{memstore.New(nil), c} }, maxCalls/2 - 1},
		"server": {func(c chan struct{}) store.Leaser { return &sharded{stuck{memstore.New(nil), c}} }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unblock := make(chan struct{})
				g := open(t, test.s(unblock), nil)
				var lost, kept []*Lease
				for i := range test.hang {
					lost = append(lost, acquired(t, g, fmt.Sprint("stuck", i), nil))
				}
				for i := range 100 {
					kept = append(kept, acquired(t, g, fmt.Sprint(i), nil))
				}
				time.Sleep(time.Minute)
				for _, l := range lost {
					ends(t, l, ErrLost)
				}
				for _, l := range kept {
					if l.Err() != nil {
						t.Errorf("lost %q: %v", l.Name(), l.Err())
					}
					released(t, l)
				}
				close(unblock)
			})
		})
	}
}

// stuck is a store that never answers to the renewal of some keys.
type stuck struct {
	store.Leaser
	unblock chan struct{}
}

func (s *stuck) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if strings.HasPrefix(l.Key, "guard:stuck") {
		<-s.unblock
	}
	return s.Leaser.Renew(ctx, l, ttl)
}

// sharded says that these keys are on a server of their own.
type sharded struct{ stuck }

func (s *sharded) Shard(key string) string {
	return fmt.Sprint(strings.HasPrefix(key, "guard:stuck"))
}

// deaf is a store whose driver does not look at contexts.
type deaf struct {
	store.Leaser
	acquire, renew, release chan struct{} // block until closed; nil does not
}

func (d *deaf) Acquire(ctx context.Context, r store.Request) (store.Lease, error) {
	hear(d.acquire)
	return d.Leaser.Acquire(ctx, r)
}

func (d *deaf) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	hear(d.renew)
	return d.Leaser.Renew(ctx, l, ttl)
}

func (d *deaf) Release(ctx context.Context, l store.Lease) error {
	hear(d.release)
	return d.Leaser.Release(ctx, l)
}

func hear(c chan struct{}) {
	if c != nil {
		<-c
	}
}
