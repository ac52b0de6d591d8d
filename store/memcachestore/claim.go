package memcachestore

import (
	"context"
	"errors"

	"github.com/herdgate/herdgate/store"
)

// Claim adds first and looks when that was refused; a repeated claim looks
// first. A cold grant is one command (add), a grant of a refresh two (add,
// gets), an answer that somebody holds the key one or two more. A claim to
// refresh that finds a newer entry may have shown itself to others as the
// holder for a moment.
func (s *Store) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	if err := req.Validate(); err != nil {
		return store.Answer{}, err
	}
	look := req.Repeated
	var answer store.Answer
	err := rounds(ctx, func() (err error) {
		if !look {
			look = true
			answer, err = s.claimBlindly(req)
			if !errors.Is(err, errAgain) {
				return err
			}
		}
		answer, err = s.claimLooking(req)
		return err
	})
	if err != nil {
		return store.Answer{}, err
	}
	return answer, nil
}

// claimBlindly hopes that no lease is there, and that an entry to refresh was
// never expired.
func (s *Store) claimBlindly(req store.Request) (store.Answer, error) {
	if req.Seen.IsZero() {
		return s.claimAt(req, slot{name: s.names.value(req.Key)})
	}
	entry := record{kind: kindEntry, token: req.Seen}
	return s.refreshAt(req, slot{name: s.names.lease(req.Key)}, entry)
}

// claimLooking reads what is there.
func (s *Store) claimLooking(req store.Request) (store.Answer, error) {
	if req.Seen.IsZero() {
		value, err := s.read(s.names.value(req.Key))
		if err != nil {
			return store.Answer{}, err
		}
		return s.claimAt(req, value)
	}
	// In this order a lease item that does not fit the value item has ended
	// for good: it names what was there before, which does not come back.
	lease, err := s.read(s.names.lease(req.Key))
	if err != nil {
		return store.Answer{}, err
	}
	value, err := s.read(s.names.value(req.Key))
	if err != nil {
		return store.Answer{}, err
	}
	if value.is(req.Seen) {
		return s.refreshAt(req, lease, value.record)
	}
	return s.claimAt(req, value)
}

// claimAt answers a claim by the value item, which is not the entry that the
// caller has seen.
func (s *Store) claimAt(req store.Request, value slot) (store.Answer, error) {
	if value.kind == kindEntry {
		return value.found(), nil
	}
	return s.answer(req, value, record{})
}

// refreshAt answers a claim to refresh entry by the lease item. If it grants,
// it looks at the value item once more:
//
//  1. A and B have seen version 1. A's add of the lease item is stored.
//  2. A fills version 2, which ends A's lease, and removes its lease item.
//  3. B's add of the lease item is stored.
//  4. B looks: the entry is version 2, and B answers Found without loading.
//     Its lease item names version 1 and is in nobody's way.
//
// TestLaw1LookAfterRefreshLease pins this. If 2 comes between 3 and 4, others
// may meanwhile have been told that B holds the key, for two round trips.
func (s *Store) refreshAt(req store.Request, lease slot, entry record) (store.Answer, error) {
	if !lease.refreshes(entry) {
		lease.record = record{} // it has ended; the item is free
	}
	answer, err := s.answer(req, lease, entry)
	if err != nil || answer.State != store.Granted {
		return answer, err
	}
	value, err := s.read(s.names.value(req.Key))
	switch {
	case err != nil:
		return store.Answer{}, err
	case value.is(entry.token) && value.mark == entry.mark:
		return answer, nil
	case value.kind == kindEntry && !value.is(req.Seen):
		return value.found(), nil
	}
	return store.Answer{}, errAgain // deleted or expired in between
}

// answer grants a lease in the slot, for a refresh of entry or cold, unless
// what is there speaks against it.
func (s *Store) answer(req store.Request, at slot, entry record) (store.Answer, error) {
	var failure store.Failure
	switch at.kind {
	case kindLease:
		if at.token != req.Token {
			return at.held(), nil
		}
		l, err := s.grantAgain(req, at)
		return store.Answer{State: store.Granted, Lease: l}, err
	case kindFailure:
		a := s.failed(at)
		if a.Failure.CoolDown > 0 {
			return a, nil
		}
		failure = a.Failure
	}
	l, err := s.grant(req, at, entry)
	return store.Answer{State: store.Granted, Lease: l, Failure: failure}, err
}
