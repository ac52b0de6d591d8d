package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// smallestLimit is the smallest proto-max-bulk-len that Redis accepts.
const smallestLimit = 1 << 20

// limitAge is for how long the server's limit is taken as known.
const limitAge = time.Minute

// limit is the server's proto-max-bulk-len. A server that is sent more closes
// the connection in the middle of it, and the client tries again, so it is
// asked before a value is sent that can be too large.
type limit struct {
	mu    sync.Mutex // protects what follows
	bytes int        // 0: unknown, the user may not ask
	asked time.Time
}

// checkEntry returns an error for what is not worth sending.
func (s *Store) checkEntry(ctx context.Context, value []byte, ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("redisstore: an entry needs a positive time to live, not %v", ttl)
	}
	if len(value) > s.maxValue {
		return fmt.Errorf("%w: %d bytes, Options.MaxValue is %d", store.ErrTooLarge, len(value), s.maxValue)
	}
	size := len(value) + entryHeader
	if size <= smallestLimit {
		return nil
	}
	if most := s.serverLimit(ctx); most > 0 && size > most {
		return fmt.Errorf("%w: %d bytes, the server's proto-max-bulk-len is %d", store.ErrTooLarge, len(value), most)
	}
	return nil
}

// tooLarge returns ErrTooLarge if err comes from the size of value: the limit
// can have changed since the server was asked.
func (s *Store) tooLarge(ctx context.Context, err error, value []byte) error {
	if len(value)+entryHeader <= smallestLimit || ctx.Err() != nil {
		return err
	}
	s.limit.forget()
	if refused := s.checkEntry(ctx, value, limitAge); refused != nil {
		return refused
	}
	return err
}

func (l *limit) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = time.Time{}
}

// serverLimit returns the server's limit, 0 if it does not tell.
func (s *Store) serverLimit(ctx context.Context) int {
	l := &s.limit
	l.mu.Lock()
	bytes, known := l.bytes, time.Since(l.asked) < limitAge && !l.asked.IsZero()
	l.mu.Unlock()
	if known {
		return bytes
	}
	reply, err := s.rdb.ConfigGet(ctx, "proto-max-bulk-len").Result()
	if ctx.Err() != nil {
		return 0
	}
	bytes, _ = strconv.Atoi(reply["proto-max-bulk-len"])
	if err != nil {
		bytes = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes, l.asked = bytes, time.Now()
	return bytes
}
