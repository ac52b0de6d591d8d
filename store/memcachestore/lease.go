package memcachestore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Acquire grants the lease on req.Key with one add. It returns a
// [*store.HeldError] if another token holds it, and an error that wraps
// [errors.ErrUnsupported] if req.Fence is set. An entry under the same key
// gives way to the lease, as if it had been evicted, and with it the lease of a
// refresh.
func (s *Store) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	if req.Fence {
		return store.Lease{}, fmt.Errorf("memcachestore: a fence: memcached has no number that outlives its restart: %w", errors.ErrUnsupported)
	}
	if err := req.Validate(); err != nil {
		return store.Lease{}, err
	}
	name, look := s.names.value(req.Key), req.Repeated
	var lease store.Lease
	err := rounds(ctx, func() (err error) {
		value := slot{name: name} // hoped to be absent
		if look {
			if value, err = s.read(name); err != nil {
				return err
			}
		}
		look = true
		lease, err = s.acquire(req, value)
		return err
	})
	return lease, err
}

// acquire takes the value item for a lease, as it was read.
func (s *Store) acquire(req store.Request, value slot) (store.Lease, error) {
	switch {
	case value.kind != kindLease:
		return s.grant(req, value, record{})
	case value.token == req.Token:
		return s.grantAgain(req, value)
	}
	return store.Lease{}, &store.HeldError{Key: req.Key, Holder: value.holder()}
}

// grant writes a new lease to the slot. The lease is for a refresh of entry,
// or cold if that is the zero record.
//
// The grant is made anew for every command that is sent, because a command can
// be delivered late:
//
//  1. A's add (token T, grant 1) is held up by the network and times out.
//  2. A repeats: add (token T, grant 2) is stored. A loads.
//  3. D deletes the key.
//  4. The first add arrives and is stored: there is nothing in its way.
//  5. A fills with grant 2: the item has grant 1, and A is told ErrLost.
//
// TestLaw2DelayedAdd pins this.
func (s *Store) grant(req store.Request, at slot, entry record) (store.Lease, error) {
	r := record{
		kind:  kindLease,
		token: req.Token,
		seen:  entry.token,
		mark:  entry.mark,
		grant: mint(!entry.token.IsZero()),
		body:  req.Note.Encode(),
	}
	return s.writeLease(req.Key, at, r, req.TTL)
}

// grantAgain starts the time of a lease anew that is already the caller's.
func (s *Store) grantAgain(req store.Request, at slot) (store.Lease, error) {
	return s.writeLease(req.Key, at, at.record, req.TTL)
}

func (s *Store) writeLease(key string, at slot, r record, ttl time.Duration) (store.Lease, error) {
	sent, n := time.Now(), seconds(ttl)
	if err := s.write(at, r, n); err != nil {
		return store.Lease{}, err
	}
	return store.Lease{Key: key, Token: r.token, Grant: r.grant, Expires: expires(sent, n)}, nil
}

// mint returns a new grant. Its lowest bit says in which item the lease is,
// since a store.Lease has no other room for it.
func mint(refresh bool) uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                 // never fails: it crashes the process instead
	g := binary.BigEndian.Uint64(b[:]) | 2 // never zero
	if refresh {
		return g | 1
	}
	return g &^ 1
}

func forRefresh(grant uint64) bool { return grant&1 == 1 }

// locate finds lease l: where its record is, and the value item beside it,
// which is the same for a cold lease. It returns [store.ErrLost] if the live
// lease on the key is not l, with both slots as far as they were read.
//
// The value item is read last: Fill writes to it.
func (s *Store) locate(l store.Lease) (lease, value slot, err error) {
	if forRefresh(l.Grant) {
		if lease, err = s.read(s.names.lease(l.Key)); err != nil {
			return lease, value, err
		}
	}
	if value, err = s.read(s.names.value(l.Key)); err != nil {
		return lease, value, err
	}
	if !forRefresh(l.Grant) {
		lease = value
	}
	if !lease.grants(l) || forRefresh(l.Grant) && !lease.refreshes(value.record) {
		return lease, value, store.ErrLost
	}
	return lease, value, nil
}

// Renew starts the lease's time to live anew, or returns [store.ErrLost]. It
// is gets and cas, and one more gets for a refresh: touch would not ask whose
// the lease is.
func (s *Store) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if err := positive(ttl); err != nil {
		return store.Lease{}, err
	}
	renewed := l
	err := rounds(ctx, func() error {
		lease, _, err := s.locate(l)
		if err != nil {
			return err
		}
		again, err := s.writeLease(l.Key, lease, lease.record, ttl)
		renewed.Expires = again.Expires
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return renewed, nil
}

// Release ends the lease by gets and cas, or returns [store.ErrLost].
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	return rounds(ctx, func() error {
		lease, _, err := s.locate(l)
		if err != nil {
			return err
		}
		return s.end(lease)
	})
}

// Break ends the lease on key, whoever has it, and returns who had it. It is
// for leases of Acquire and of cold loads; what ends a refresh is Delete or
// Expire.
func (s *Store) Break(ctx context.Context, key string) (store.Holder, error) {
	var holder store.Holder
	err := rounds(ctx, func() error {
		value, err := s.read(s.names.value(key))
		if err != nil || value.kind != kindLease {
			holder = store.Holder{}
			return err
		}
		holder = value.holder()
		return s.end(value)
	})
	if err != nil {
		return store.Holder{}, err
	}
	return holder, nil
}
