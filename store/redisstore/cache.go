package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Get returns the entry of key by one plain GET, or [store.ErrMiss].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return entryOf(s.rdb.Get(ctx, s.name(entryKey, key)))
}

// The answers of the claim and acquire scripts.
const (
	saysFound   = 1
	saysGranted = 2
	saysHeld    = 3
	saysFailed  = 4
)

// Claim implements [store.Cache] in one round trip. An error of the server
// leaves no lease, or one that expires after req.TTL.
func (s *Store) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	if err := req.Validate(); err != nil {
		return store.Answer{}, err
	}
	keys := s.cacheNames(req.Key)
	r, err := s.run(ctx, claimScript, call{keys, []any{
		string(req.Token[:]), millis(req.TTL), req.Note.Encode(), string(req.Seen[:]), s.inboxFor(keys[2]),
	}})
	if err != nil {
		return store.Answer{}, err
	}
	switch r.number(1) {
	case saysFound:
		e, _ := decodeEntry([]byte(r.text(2)))
		return store.Answer{State: store.Found, Entry: e}, nil
	case saysGranted:
		return store.Answer{State: store.Granted, Lease: r.lease(req), Failure: decodeFailure(r.text(3), r.time())}, nil
	case saysHeld:
		return store.Answer{State: store.Held, Holder: r.holder()}, nil
	case saysFailed:
		return store.Answer{State: store.Failed, Failure: decodeFailure(r.text(2), r.time())}, nil
	}
	return store.Answer{}, explain("claim", errReply)
}

// Fill implements [store.Cache] in one round trip. It sends value along to the
// processes that wait if it has at most 4 KiB.
func (s *Store) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	if err := s.checkEntry(ctx, value, ttl); err != nil {
		return err
	}
	keys := s.cacheNames(l.Key)
	r, err := s.run(ctx, fillScript, call{keys, []any{
		identity(l), encodeEntry(l.Token, value), millis(ttl), s.inbox,
	}})
	if err != nil {
		return s.tooLarge(ctx, err, value)
	}
	switch r.number(1) {
	case 0:
		return store.ErrLost
	case 1: // the script tells the others; who waits in this process is told here
		s.watches.deliver(keys[2], store.Event{Grant: l.Grant, Entry: store.Entry{Version: l.Token, Value: value}})
	}
	return nil
}

// Yield implements [store.Cache] in one round trip.
func (s *Store) Yield(ctx context.Context, l store.Lease, f store.Failure) error {
	cool, memory := max(f.CoolDown, 0), max(f.Memory, f.CoolDown, 0)
	if len(f.Data) == 0 {
		f, cool, memory = store.Failure{}, 0, 0
	}
	w := s.name(waitKey, l.Key)
	r, err := s.run(ctx, yieldScript, call{[]string{s.name(leaseKey, l.Key), w}, []any{
		identity(l), millis(cool), millis(memory), f.Data, s.inbox,
	}})
	if err != nil {
		return err
	}
	if r.number(1) == 0 {
		return store.ErrLost
	}
	s.watches.deliver(w, store.Event{Grant: l.Grant, Failure: store.Failure{Data: f.Data, CoolDown: cool}})
	return nil
}

// Delete implements [store.Cache] in one round trip.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.run(ctx, deleteScript, call{s.cacheNames(key), []any{s.gone, key}})
	return err
}

// DeleteAll implements [store.BatchDeleter] in one round trip per server.
func (s *Store) DeleteAll(ctx context.Context, keys []string) []error {
	calls := make([]call, len(keys))
	for i, key := range keys {
		calls[i] = call{s.cacheNames(key), []any{s.gone, key}}
	}
	_, errs := s.runAll(ctx, deleteScript, calls)
	return errs
}

// Expire implements [store.Expirer] in one round trip.
func (s *Store) Expire(ctx context.Context, key string) error {
	_, err := s.run(ctx, expireScript, call{s.cacheNames(key), []any{s.gone, key}})
	return err
}

// Put implements [store.Putter] in one round trip.
func (s *Store) Put(ctx context.Context, key string, version store.Token, value []byte, ttl time.Duration) error {
	if version.IsZero() {
		return errors.New("redisstore: Put with the zero version: make one with store.NewToken")
	}
	if err := s.checkEntry(ctx, value, ttl); err != nil {
		return err
	}
	_, err := s.run(ctx, putScript, call{s.cacheNames(key), []any{encodeEntry(version, value), millis(ttl), s.gone, key}})
	if err != nil {
		return s.tooLarge(ctx, err, value)
	}
	return nil
}
