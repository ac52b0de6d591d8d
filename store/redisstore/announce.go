package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store"
)

// Announce implements [store.Announcer]. It costs every process that calls it
// one message for each Delete, Put and Expire of the namespace; a cluster
// passes it on to all of its nodes. A ring, whose shards know nothing of each
// other, cannot announce: the error wraps [errors.ErrUnsupported].
func (s *Store) Announce(ctx context.Context, f func(store.Change)) (stop func(), err error) {
	if _, ok := s.rdb.(*redis.Ring); ok {
		return nil, fmt.Errorf("redisstore: announcements on a ring: %w", errors.ErrUnsupported)
	}
	feed, err := s.feedOf(s.gone)
	if err != nil {
		return nil, err
	}
	if err := feed.live(ctx); err != nil {
		return nil, explain("announce", err)
	}
	if err := feed.widen(ctx); err != nil {
		return nil, explain("announce", err)
	}
	return s.changes.add(f), nil
}

// changes are the receivers of announcements.
type changes struct {
	mu        sync.Mutex // protects what follows
	receivers map[*func(store.Change)]struct{}
}

func (c *changes) add(f func(store.Change)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receivers == nil {
		c.receivers = make(map[*func(store.Change)]struct{})
	}
	c.receivers[&f] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.receivers, &f)
	}
}

func (c *changes) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.receivers) > 0
}

// tell passes on that the entry of key ended out of turn.
func (c *changes) tell(key string) { c.send(store.Change{Key: key}) }

// doubt says that announcements may have been missed.
func (c *changes) doubt() { c.send(store.Change{All: true}) }

func (c *changes) send(change store.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.receivers {
		(*f)(change)
	}
}
