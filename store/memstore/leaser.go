package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Acquire implements [store.Leaser].
func (s *Store) Acquire(_ context.Context, req store.Request) (store.Lease, error) {
	return s.acquire(req, false)
}

// Enqueue implements [store.Queuer].
func (s *Store) Enqueue(_ context.Context, req store.Request) (store.Lease, error) {
	return s.acquire(req, true)
}

func (s *Store) acquire(req store.Request, wait bool) (store.Lease, error) {
	if err := req.Validate(); err != nil {
		return store.Lease{}, err
	}
	v := s.open(req.Key)
	defer v.shut()
	live := v.lease()
	switch {
	case live.grant == 0:
		return v.grant(req, req.TTL), nil
	case live.token == req.Token:
		return v.extend(req, req.TTL), nil
	}
	if wait {
		v.wait(req)
	}
	return store.Lease{}, &store.HeldError{Key: req.Key, Holder: live.holder(v.now)}
}

// wait gives req a place in the queue, or keeps the one it has.
func (v *visit) wait(req store.Request) {
	b := v.r.busy
	p := place{req: req, asked: v.now}
	if i := b.place(req.Token); i >= 0 {
		b.queue[i] = p
		return
	}
	b.queue = append(b.queue, p)
}

// place returns the index of token's place in the queue, -1 if it has none.
func (b *busy) place(token store.Token) int {
	return slices.IndexFunc(b.queue, func(p place) bool { return p.req.Token == token })
}

// Leave implements [store.Queuer].
func (s *Store) Leave(_ context.Context, req store.Request) error {
	v := s.open(req.Key)
	defer v.shut()
	b := v.r.busy
	if b == nil {
		return nil
	}
	if i := b.place(req.Token); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	if b.lease.grant != 0 && b.lease.token == req.Token {
		v.end(store.Event{})
	}
	return nil
}

// Renew implements [store.Leaser] and [store.Cache].
func (s *Store) Renew(_ context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if ttl <= 0 {
		return store.Lease{}, errTTL
	}
	v := s.open(l.Key)
	defer v.shut()
	if !v.holds(l) {
		return store.Lease{}, store.ErrLost
	}
	return v.extend(store.Request{Key: l.Key, Fence: l.Fence != 0}, ttl), nil
}

// RenewAll implements [store.BatchRenewer].
func (s *Store) RenewAll(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Lease, []error) {
	renewed, errs := make([]store.Lease, len(leases)), make([]error, len(leases))
	for i, l := range leases {
		renewed[i], errs[i] = s.Renew(ctx, l, ttl)
	}
	return renewed, errs
}

// Release implements [store.Leaser].
func (s *Store) Release(_ context.Context, l store.Lease) error {
	v := s.open(l.Key)
	defer v.shut()
	if !v.holds(l) {
		return store.ErrLost
	}
	v.end(store.Event{})
	return nil
}

// Break implements [store.Breaker].
func (s *Store) Break(_ context.Context, key string) (store.Holder, error) {
	v := s.open(key)
	defer v.shut()
	live := v.lease()
	if live.grant == 0 {
		return store.Holder{}, nil
	}
	v.end(store.Event{})
	return live.holder(v.now), nil
}
