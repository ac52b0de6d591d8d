package memcachestore

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Fill stores value as the entry and so ends the lease: gets and cas for a cold
// lease; for a refresh one more gets to check the lease item, and one more cas
// to tidy it away. It returns [store.ErrLost], or [store.ErrTooLarge] if the
// server refuses the size (its -I option, 1 MiB unless set, less the name, 65
// bytes of ours and some of its own); entry and lease stay as they are then.
func (s *Store) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	if err := positive(ttl); err != nil {
		return err
	}
	return rounds(ctx, func() error {
		lease, at, err := s.locate(l)
		if at.is(l.Token) {
			return nil // stored before, and the reply was lost
		}
		if err != nil {
			return err
		}
		err = s.writeEntry(at, l.Token, value, ttl)
		if err == nil && forRefresh(l.Grant) {
			_ = s.end(lease) // it has ended anyway; the next claim is cheaper so
		}
		return err
	})
}

// writeEntry writes to a slot that was read and is not absent.
func (s *Store) writeEntry(at slot, version store.Token, value []byte, ttl time.Duration) error {
	n := seconds(ttl)
	r := record{
		kind:  kindEntry,
		token: version,
		stamp: time.Now().UnixMilli(),
		span:  time.Duration(n) * time.Second,
		body:  value,
	}
	return s.write(at, r, n)
}

// Yield ends the lease and, if f has data, leaves the failure in its place, by
// gets and cas, one more gets for a refresh. It returns [store.ErrLost].
func (s *Store) Yield(ctx context.Context, l store.Lease, f store.Failure) error {
	return rounds(ctx, func() error {
		lease, _, err := s.locate(l)
		if err != nil {
			return err
		}
		if len(f.Data) == 0 {
			return s.end(lease)
		}
		r := record{
			kind:  kindFailure,
			seen:  lease.seen,
			mark:  lease.mark,
			stamp: time.Now().UnixMilli(),
			span:  span(f.CoolDown),
			body:  f.Data,
		}
		err = s.write(lease, r, seconds(max(f.Memory, f.CoolDown)))
		if refused(err) {
			return s.end(lease)
		}
		return err
	})
}

// Put stores value as the entry, whatever is there. It never uses set, nor add
// for the entry, which the network could deliver after a Delete that came
// later. Where no item is, it first makes one to swap: a lease of its own.
//
//  1. P puts the old value: its last command is held up and times out.
//  2. D deletes the key and returns.
//  3. P's command arrives: it is a cas, and finds nothing to swap.
//
// TestLaw3DelayedPut pins this.
//
// It returns [store.ErrTooLarge] if the server refuses the size, and leaves
// what is there as it is.
func (s *Store) Put(ctx context.Context, key string, version store.Token, value []byte, ttl time.Duration) error {
	if err := positive(ttl); err != nil {
		return err
	}
	req := store.Request{Key: key, Token: version, TTL: minSeconds * time.Second}
	if err := req.Validate(); err != nil {
		return err
	}
	return rounds(ctx, func() error {
		at, err := s.read(s.names.value(key))
		if err != nil {
			return err
		}
		if at.item == nil {
			if _, err := s.grant(req, at, record{}); err != nil {
				return err
			}
			return errAgain
		}
		err = s.writeEntry(at, version, value, ttl)
		if refused(err) && at.kind == kindLease && at.token == version {
			return errors.Join(err, s.end(at))
		}
		return err
	})
}

// Expire marks the entry stale, by gets and cas, and with the same cas ends a
// refresh of it:
//
//  1. R claims a refresh of version 1 and loads.
//  2. E expires version 1, which gets a mark that no lease item has.
//  3. R fills: its lease item does not fit the mark. R is told ErrLost.
//  4. N claims version 1 and is granted a lease with the mark.
//
// TestLaw2ExpireEndsRefresh pins this. A cold lease ends too, and a
// failure is forgotten: one of a refresh has the old mark.
func (s *Store) Expire(ctx context.Context, key string) error {
	return rounds(ctx, func() error {
		at, err := s.read(s.names.value(key))
		if err != nil {
			return err
		}
		switch at.kind {
		case kindLease, kindFailure:
			return s.end(at)
		case kindEntry:
			r := at.record
			r.mark = mint(false)
			return s.write(at, r, seconds(r.remaining(time.Now())))
		}
		return nil
	})
}
