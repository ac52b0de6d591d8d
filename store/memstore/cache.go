package memstore

import (
	"context"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Get implements [store.Cache]. A miss while somebody computes the entry, or
// while a failure cools down, is a [*store.MissError].
func (s *Store) Get(_ context.Context, key string) (store.Entry, error) {
	sh, now := s.shard(key), s.now()
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	r := sh.records[key]
	if r == nil {
		return store.Entry{}, store.ErrMiss
	}
	if !r.filled || r.ends <= now {
		return store.Entry{}, r.miss(now)
	}
	if !r.used.Load() { // spares the others' cache line
		r.used.Store(true)
	}
	return r.entry, nil
}

// miss says why there is no entry. It changes nothing: the caller has the
// record to read only.
func (r *record) miss(now time.Duration) error {
	b := r.busy
	if b == nil {
		return store.ErrMiss
	}
	if b.lease.grant != 0 {
		if b.lease.ends <= now {
			return store.ErrMiss
		}
		return &store.MissError{Answer: store.Answer{State: store.Held, Holder: b.lease.holder(now)}}
	}
	if len(b.failure.data) == 0 || b.failure.cools <= now {
		return store.ErrMiss
	}
	return &store.MissError{Answer: store.Answer{State: store.Failed, Failure: b.failure.at(now)}}
}

// Claim implements [store.Cache].
func (s *Store) Claim(_ context.Context, req store.Request) (store.Answer, error) {
	if err := req.Validate(); err != nil {
		return store.Answer{}, err
	}
	v := s.open(req.Key)
	defer v.shut()
	live := v.lease()
	switch {
	case v.r.filled && v.r.entry.Version != req.Seen:
		return store.Answer{State: store.Found, Entry: v.r.entry}, nil
	case live.grant != 0 && live.token == req.Token:
		return store.Answer{State: store.Granted, Lease: v.extend(req, req.TTL), Failure: v.r.busy.failure.at(v.now)}, nil
	case live.grant != 0:
		return store.Answer{State: store.Held, Holder: live.holder(v.now)}, nil
	}
	f := v.busy().failure.at(v.now)
	if f.CoolDown > 0 {
		return store.Answer{State: store.Failed, Failure: f}, nil
	}
	return store.Answer{State: store.Granted, Lease: v.grant(req, req.TTL), Failure: f}, nil
}

// Fill implements [store.Cache].
func (s *Store) Fill(_ context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	if err := s.check(l.Key, value, ttl); err != nil {
		return err
	}
	v := s.open(l.Key)
	defer v.shut()
	if !v.holds(l) {
		if v.r.filled && v.r.entry.Version == l.Token {
			return nil // by an earlier call, whose reply the caller did not get
		}
		return store.ErrLost
	}
	e := store.Entry{Version: l.Token, Value: value}
	v.fill(e, ttl)
	v.end(store.Event{Entry: e})
	return nil
}

// check returns why the store cannot keep value for ttl.
func (s *Store) check(key string, value []byte, ttl time.Duration) error {
	if ttl <= 0 {
		return errTTL
	}
	if size(key, value) > s.maxBytes {
		return store.ErrTooLarge
	}
	return nil
}

// Yield implements [store.Cache].
func (s *Store) Yield(_ context.Context, l store.Lease, f store.Failure) error {
	v := s.open(l.Key)
	defer v.shut()
	if !v.holds(l) {
		return store.ErrLost
	}
	f.Memory = max(f.Memory, f.CoolDown)
	if len(f.Data) == 0 || f.Memory <= 0 {
		f = store.Failure{}
	}
	v.end(store.Event{Failure: f})
	if f.Memory > 0 {
		v.r.busy.failure = failure{data: f.Data, cools: after(v.now, f.CoolDown), ends: after(v.now, f.Memory)}
	}
	return nil
}

// Delete implements [store.Cache].
func (s *Store) Delete(_ context.Context, key string) error {
	defer s.changes.tell(key)
	v := s.open(key)
	defer v.shut()
	v.unfill()
	v.end(store.Event{})
	return nil
}

// DeleteAll implements [store.BatchDeleter].
func (s *Store) DeleteAll(ctx context.Context, keys []string) []error {
	errs := make([]error, len(keys))
	for i, key := range keys {
		errs[i] = s.Delete(ctx, key)
	}
	return errs
}

// Put implements [store.Putter].
func (s *Store) Put(_ context.Context, key string, version store.Token, value []byte, ttl time.Duration) error {
	if err := s.check(key, value, ttl); err != nil {
		return err
	}
	if version.IsZero() {
		return errVersion
	}
	defer s.changes.tell(key)
	v := s.open(key)
	defer v.shut()
	v.fill(store.Entry{Version: version, Value: value}, ttl)
	v.end(store.Event{})
	return nil
}

// Expire implements [store.Expirer].
func (s *Store) Expire(_ context.Context, key string) error {
	defer s.changes.tell(key)
	v := s.open(key)
	defer v.shut()
	v.r.entry.Stale = v.r.filled
	v.end(store.Event{})
	return nil
}
