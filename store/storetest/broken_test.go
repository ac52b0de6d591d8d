package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// The stores in this file break what is promised of grants, leases and fills.

// grantsTwice has no idea that somebody holds the key.
type grantsTwice struct{ *mem }

func (s grantsTwice) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	l, err := s.mem.Acquire(ctx, req)
	if errors.Is(err, store.ErrHeld) {
		return store.Lease{Key: req.Key, Token: req.Token, Grant: 7, Expires: time.Now().Add(req.TTL)}, nil
	}
	return l, err
}

func (s grantsTwice) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	a, err := s.mem.Claim(ctx, req)
	if a.State == store.Held {
		a.State = store.Granted
		a.Lease, err = s.Acquire(ctx, req)
	}
	return a, err
}

// apart has a lease of its own for each role.
type apart struct{ *mem }

func (s apart) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	req.Key += ":lease"
	return s.mem.Acquire(ctx, req)
}

// looksThenTakes does not claim atomically.
type looksThenTakes struct{ *mem }

func (s looksThenTakes) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	probe, err := s.mem.Acquire(ctx, req)
	if err != nil {
		return probe, err
	}
	if s.mem.Release(ctx, probe) != nil {
		return probe, nil
	}
	time.Sleep(time.Millisecond) // the others look too
	if _, err := s.Break(ctx, req.Key); err != nil {
		return probe, err
	}
	return s.mem.Acquire(ctx, req)
}

// tokenOnly compares tokens and no grants.
type tokenOnly struct {
	*mem
	mu    sync.Mutex // protects lease
	lease map[string]store.Lease
}

func newTokenOnly() *tokenOnly { return &tokenOnly{mem: small(), lease: map[string]store.Lease{}} }

func (s *tokenOnly) note(l store.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease[l.Key] = l
}

// live returns the lease that has l's token, whatever its grant.
func (s *tokenOnly) live(l store.Lease) store.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.lease[l.Key]; last.Token == l.Token {
		return last
	}
	return l
}

func (s *tokenOnly) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	l, err := s.mem.Acquire(ctx, req)
	if err == nil {
		s.note(l)
	}
	return l, err
}

func (s *tokenOnly) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	a, err := s.mem.Claim(ctx, req)
	if a.State == store.Granted {
		s.note(a.Lease)
	}
	return a, err
}

func (s *tokenOnly) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	return s.mem.Fill(ctx, s.live(l), value, ttl)
}

func (s *tokenOnly) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	return s.mem.Renew(ctx, s.live(l), ttl)
}

func (s *tokenOnly) Release(ctx context.Context, l store.Lease) error {
	return s.mem.Release(ctx, s.live(l))
}

func (s *tokenOnly) Yield(ctx context.Context, l store.Lease, f store.Failure) error {
	return s.mem.Yield(ctx, s.live(l), f)
}

// fillsAlways stores the value of a lost lease.
type fillsAlways struct{ *mem }

func (s fillsAlways) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	err := s.mem.Fill(ctx, l, value, ttl)
	if errors.Is(err, store.ErrLost) {
		return s.Put(ctx, l.Key, l.Token, value, ttl)
	}
	return err
}

// fillsOnce forgets that it has filled.
type fillsOnce struct {
	*mem
	done *sync.Map
}

func (s fillsOnce) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	err := s.mem.Fill(ctx, l, value, ttl)
	if _, again := s.done.LoadOrStore(l.Grant, true); again && err == nil {
		return store.ErrLost
	}
	return err
}

// endsNoLease deletes, puts and expires entries beside a lease, which stays.
type endsNoLease struct {
	*mem
	leases *sync.Map // by key
}

func (s endsNoLease) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	a, err := s.mem.Claim(ctx, req)
	if a.State == store.Granted {
		s.leases.Store(req.Key, a.Lease)
	}
	return a, err
}

func (s endsNoLease) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	if last, ok := s.leases.Load(l.Key); ok && last == l {
		s.leases.Delete(l.Key)
		return s.Put(ctx, l.Key, l.Token, value, ttl)
	}
	return s.mem.Fill(ctx, l, value, ttl)
}

// newGrants answers the same token with another grant.
type newGrants struct{ *mem }

func (s newGrants) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	l, err := s.mem.Acquire(ctx, req)
	if err == nil && s.mem.Release(ctx, l) == nil {
		return s.mem.Acquire(ctx, req)
	}
	return l, err
}

func (s newGrants) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	a, err := s.mem.Claim(ctx, req)
	if a.State == store.Granted && s.mem.Yield(ctx, a.Lease, store.Failure{}) == nil {
		return s.mem.Claim(ctx, req)
	}
	return a, err
}

// oldGrants uses one grant for all leases, and counts their time from when the
// reply came, or later.
type oldGrants struct{ *mem }

func (s oldGrants) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	l, err := s.mem.Acquire(ctx, req)
	l.Grant, l.Fence, l.Expires = 1, 1, l.Expires.Add(time.Second)
	return l, err
}

func (s oldGrants) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	a, err := s.mem.Claim(ctx, req)
	if a.State == store.Granted {
		a.Lease.Grant, a.Lease.Expires = 1, a.Lease.Expires.Add(time.Second)
	}
	return a, err
}

// ignoresSeen grants whatever is there, and has no lease for who has seen what
// is not there any more.
type ignoresSeen struct{ *mem }

func (s ignoresSeen) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	e, err := s.mem.Get(ctx, req.Key)
	if err != nil && !req.Seen.IsZero() {
		return store.Answer{State: store.Held}, nil
	}
	req.Seen = e.Version
	return s.mem.Claim(ctx, req)
}

// reuses reads all values into one buffer, and tells the time backwards.
type reuses struct {
	*mem
	mu     sync.Mutex // protects buffer
	buffer []byte
}

func (s *reuses) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := s.mem.Get(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer = append(s.buffer[:0], e.Value...)
	e.Value = s.buffer
	return e, err
}

func (s *reuses) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	s.mu.Lock()
	copy(s.buffer, value)
	s.mu.Unlock()
	return s.mem.Fill(ctx, l, value, ttl)
}

func (s *reuses) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer = append(s.buffer, 0)
	return time.Now().Add(-time.Duration(len(s.buffer)))
}
