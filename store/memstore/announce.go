package memstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/herdgate/herdgate/store"
)

var _ store.Announcer = (*Store)(nil)

// changes are the receivers of announcements.
type changes struct {
	some      atomic.Bool // there are receivers
	mu        sync.Mutex  // protects receivers
	receivers map[*func(store.Change)]struct{}
}

// Announce implements [store.Announcer]. It never fails. Who changes an entry
// calls f itself.
func (s *Store) Announce(_ context.Context, f func(store.Change)) (stop func(), err error) {
	c := &s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receivers == nil {
		c.receivers = make(map[*func(store.Change)]struct{})
	}
	c.receivers[&f] = struct{}{}
	c.some.Store(true)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.receivers, &f)
		c.some.Store(len(c.receivers) > 0)
	}, nil
}

// tell announces that the entry of key ended out of turn.
func (c *changes) tell(key string) {
	if !c.some.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.receivers {
		(*f)(store.Change{Key: key})
	}
}
