package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store"
)

var _ store.BatchGetter = (*Store)(nil)

// GetAll implements [store.BatchGetter] by one plain GET per key, in one round
// trip per server.
func (s *Store) GetAll(ctx context.Context, keys []string) ([]store.Entry, []error) {
	pipe := s.rdb.Pipeline()
	replies := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		replies[i] = pipe.Get(ctx, s.name(entryKey, key))
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	entries, errs := make([]store.Entry, len(keys)), make([]error, len(keys))
	for i, reply := range replies {
		entries[i], errs[i] = entryOf(reply)
	}
	return entries, errs
}

// entryOf returns what a GET has brought.
func entryOf(reply *redis.StringCmd) (store.Entry, error) {
	b, err := reply.Bytes()
	if errors.Is(err, redis.Nil) {
		return store.Entry{}, store.ErrMiss
	}
	if err != nil {
		return store.Entry{}, explain("get", err)
	}
	e, ok := decodeEntry(b)
	if !ok {
		return store.Entry{}, store.ErrMiss
	}
	return e, nil
}
