package memcachestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/store"
)

// slot is an item as it was read, or its absence. What is written to a slot
// arrives only if nothing has changed there since.
type slot struct {
	name string
	record
	item *memcache.Item // nil if there was none
}

// read asks for one item. What is not ours is a slot with an item and a record
// of kindNone, which can be written to like any other.
func (s *Store) read(name string) (slot, error) {
	item, err := s.client.Get(name)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return slot{name: name}, nil
	}
	if err != nil {
		return slot{}, wrap("get", err)
	}
	return slot{name: name, record: decode(item.Value), item: item}, nil
}

// write puts r in the slot for the given number of seconds, by add if there
// was no item, else by cas. It returns errAgain if the slot has changed since
// it was read. The cas id is as old as the read: ids repeat after a restart of
// the server, so that nothing lengthy may happen in between.
func (s *Store) write(at slot, r record, expiration int32) error {
	return s.swap(at, r.encode(), expiration)
}

// end removes the item, by cas with an expiry in the past: delete would not
// ask whose it is.
func (s *Store) end(at slot) error { return s.swap(at, nil, -1) }

func (s *Store) swap(at slot, value []byte, expiration int32) error {
	item := &memcache.Item{Key: at.name, Value: value, Expiration: expiration}
	if at.item == nil {
		return wrap("add", s.client.Add(item))
	}
	item.CasID = at.item.CasID
	return wrap("cas", s.client.CompareAndSwap(item))
}

// remove removes the item, whatever it is.
func (s *Store) remove(name string) error {
	err := s.client.Delete(name)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil
	}
	return wrap("delete", err)
}

// errAgain says that a slot has changed since it was read, so that the
// operation has to begin anew.
var errAgain = fmt.Errorf("memcachestore: gave up after %d rounds: the item kept changing or the connection breaking", maxRounds)

// wrap turns an error of gomemcache into one of ours. A connection that broke
// is as good as a change: one that idled in the client's pool while the server
// restarted breaks at its first use, and the next one is a new one.
func wrap(command string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, memcache.ErrNotStored), errors.Is(err, memcache.ErrCASConflict), errors.Is(err, memcache.ErrCacheMiss):
		return errAgain
	case broken(err):
		return fmt.Errorf("%w: %s: %w", errAgain, command, err)
	case strings.Contains(err.Error(), "object too large for cache"):
		return fmt.Errorf("memcachestore: %s: %w", command, store.ErrTooLarge)
	}
	return fmt.Errorf("memcachestore: %s: %w", command, err)
}

// refused reports whether the server had no room for what was written, which
// leaves the slot as it was.
func refused(err error) bool {
	return errors.Is(err, store.ErrTooLarge) ||
		err != nil && strings.Contains(err.Error(), "out of memory storing object")
}

func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// maxRounds is how often an operation begins anew. Each time, somebody else
// has got something done, or one broken connection has left the pool.
const maxRounds = 100

// rounds runs f, which reads slots, decides, and writes at most to what it has
// read, until it returns anything but errAgain.
func rounds(ctx context.Context, f func() error) error {
	var err error
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err = f(); !errors.Is(err, errAgain) {
			return err
		}
	}
	return err
}
