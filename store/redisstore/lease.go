package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Acquire implements [store.Leaser] in one round trip. It does not barge in
// where others queue: a lease that is free goes to who has waited longest, and
// the request is refused.
func (s *Store) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	return s.acquire(ctx, req, false)
}

// acquire is Acquire, and Enqueue with queue.
func (s *Store) acquire(ctx context.Context, req store.Request, queue bool) (store.Lease, error) {
	if err := req.Validate(); err != nil {
		return store.Lease{}, err
	}
	if req.Fence && !s.facts.Fences {
		return store.Lease{}, fmt.Errorf("redisstore: a lease with a fence needs Options.Fences: %w", errors.ErrUnsupported)
	}
	keys := s.leaseNames(req.Key)
	r, err := s.run(ctx, acquireScript, call{keys, []any{
		string(req.Token[:]), millis(req.TTL), req.Note.Encode(), s.inboxFor(keys[1]), req.Fence, queue, s.stamp(),
	}})
	if err != nil {
		return store.Lease{}, err
	}
	switch r.number(1) {
	case saysGranted:
		return r.lease(req), nil
	case saysHeld:
		return store.Lease{}, &store.HeldError{Key: req.Key, Holder: r.holder()}
	}
	return store.Lease{}, explain("acquire", errReply)
}

// stamp is the time on the Store's own clock, which is monotonic.
func (s *Store) stamp() string {
	return string(appendDigits(nil, uint64(time.Since(s.epoch).Microseconds())))
}

// Renew implements [store.Leaser] and [store.Cache] in one round trip.
func (s *Store) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if ttl <= 0 {
		return store.Lease{}, errNoTTL
	}
	r, err := s.run(ctx, renewScript, s.renewal(l, ttl))
	return renewed(l, ttl, r, err)
}

// RenewAll implements [store.BatchRenewer] in one round trip per server. It
// returns when the slowest server has answered or is given up.
func (s *Store) RenewAll(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Lease, []error) {
	results, calls := make([]store.Lease, len(leases)), make([]call, len(leases))
	if ttl <= 0 {
		return results, slices.Repeat([]error{errNoTTL}, len(leases))
	}
	for i, l := range leases {
		calls[i] = s.renewal(l, ttl)
	}
	replies, errs := s.runAll(ctx, renewScript, calls)
	for i, l := range leases {
		results[i], errs[i] = renewed(l, ttl, replies[i], errs[i])
	}
	return results, errs
}

var errNoTTL = errors.New("redisstore: a lease needs a positive time to live")

func (s *Store) renewal(l store.Lease, ttl time.Duration) call {
	w := s.name(waitKey, l.Key)
	return call{[]string{s.name(leaseKey, l.Key), w}, []any{identity(l), millis(ttl), s.inboxFor(w)}}
}

// renewed is the result of a renewal.
func renewed(l store.Lease, ttl time.Duration, r reply, err error) (store.Lease, error) {
	if err != nil {
		return store.Lease{}, err
	}
	if r.number(1) == 0 {
		return store.Lease{}, store.ErrLost
	}
	l.Expires = r.sent.Add(span(ttl))
	return l, nil
}

// Release implements [store.Leaser] in one round trip. The lease goes to who
// has waited longest in the queue, if anybody has.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	r, err := s.run(ctx, releaseScript, call{s.leaseNames(l.Key), []any{identity(l)}})
	if err == nil && r.number(1) == 0 {
		return store.ErrLost
	}
	return err
}

// Break implements [store.Breaker] in one round trip. The lease goes to who
// has waited longest in the queue, if anybody has, and its holder is told.
func (s *Store) Break(ctx context.Context, key string) (store.Holder, error) {
	r, err := s.run(ctx, breakScript, call{s.leaseNames(key), nil})
	if err != nil {
		return store.Holder{}, err
	}
	return decodeHolder(r.text(1), time.Duration(r.number(2))*time.Millisecond), nil
}

// lease reads a granted lease: µs, 2, grant. It expires for its holder as if
// the server had granted it when the request was sent.
func (r reply) lease(req store.Request) store.Lease {
	grant, _, _ := decodeDigits(r.text(2))
	l := store.Lease{Key: req.Key, Token: req.Token, Grant: grant, Expires: r.sent.Add(span(req.TTL))}
	if req.Fence {
		l.Fence = grant
	}
	return l
}

// holder reads who has the lease: µs, 3, lease, ms left.
func (r reply) holder() store.Holder {
	return decodeHolder(r.text(2), time.Duration(r.number(3))*time.Millisecond)
}
