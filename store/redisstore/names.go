package redisstore

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
)

// The keys that belong to one key. All share a cluster slot.
const (
	entryKey  = ":v:{" // string: the entry
	leaseKey  = ":l:{" // string: the lease or the failure
	waitKey   = ":w:{" // set: the inboxes of the processes that wait
	queueKey  = ":q:{" // list: the tokens that wait for their turn, in order
	placeKey  = ":p:{" // hash: token to place in the queue
	fenceKey  = ":f:{" // string: the last fence
	inboxName = ":i:"  // channel of one Store, with its token
	goneName  = ":g"   // channel on which keys are announced whose entry ended out of turn
)

// name returns the Redis key of the given kind that belongs to key. The slot
// is that of the key itself where it can be a hash tag, so that the keys are
// readable, else that of its hash.
//
// No two keys share a name: what is in braces is followed by nothing in the
// first case and by a colon in the second.
func (s *Store) name(kind, key string) string {
	if key != "" && !strings.ContainsAny(key, "{}") {
		return s.namespace + kind + key + "}"
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return fmt.Sprintf("%s%s%016x}:%s", s.namespace, kind, h.Sum64(), key)
}

// cacheNames returns the KEYS of the scripts of the cache.
func (s *Store) cacheNames(key string) []string {
	return []string{s.name(entryKey, key), s.name(leaseKey, key), s.name(waitKey, key)}
}

// leaseNames returns the KEYS of the scripts of leases.
func (s *Store) leaseNames(key string) []string {
	return []string{s.name(leaseKey, key), s.name(waitKey, key), s.name(queueKey, key), s.name(placeKey, key), s.name(fenceKey, key)}
}

// checkNamespace returns an error for a namespace that could be confused with
// the rest of a name, or that nobody could read.
func checkNamespace(ns string) error {
	if len(ns) > 64 {
		return errors.New("redisstore: Options.Namespace is longer than 64 bytes")
	}
	for _, r := range ns {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("_-.:/", r) {
			return fmt.Errorf("redisstore: Options.Namespace has %q; letters, digits and _-.:/ are allowed", r)
		}
	}
	return nil
}
