package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store"
)

// Watch implements [store.Watcher]. The first one subscribes, which takes a
// round trip and, while the server does not answer, until ctx ends. Later ones
// cost nothing. While the subscription is down Watch returns why, and after it
// came back every watch gets a zero Event.
//
// Claims, requests and renewals of the key made while it is watched ask to be
// told how the lease ends.
func (s *Store) Watch(ctx context.Context, key string) (<-chan store.Event, func(), error) {
	w := s.name(waitKey, key)
	f, err := s.feedOf(w)
	if err != nil {
		return nil, nil, err
	}
	events, stop := s.watches.add(w, key)
	if err := f.live(ctx); err != nil {
		stop()
		return nil, nil, explain("watch", err)
	}
	return events, stop, nil
}

// inboxFor returns where to tell this process about the key with the given
// wait key: nowhere if nobody watches it.
func (s *Store) inboxFor(w string) string {
	if s.watches.has(w) {
		return s.inbox
	}
	return ""
}

// feedOf returns the subscription to the server that has the key w, and opens
// it if need be. The shards of a ring know nothing of each other, so each has
// its own; all else is one server in this respect.
func (s *Store) feedOf(w string) (*feed, error) {
	var src source = s.rdb
	var shard *redis.Client
	if ring, ok := s.rdb.(*redis.Ring); ok {
		var err error
		if shard, err = ring.GetShardClientForKey(w); err != nil {
			return nil, explain("watch", err)
		}
		src = shard
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, ErrClosed
	}
	f, ok := s.feeds[shard]
	if !ok {
		f = &feed{source: src, inbox: s.inbox, gone: s.gone, pulse: s.pulse, changed: make(chan struct{}),
			watched: s.listens, lookAgain: s.lookAgain, receive: s.receive, announced: s.changes.tell}
		s.feeds[shard] = f
		f.start(s.ctx)
	}
	return f, nil
}

// listens reports whether anybody waits for messages.
func (s *Store) listens() bool { return s.watches.any() || s.changes.any() }

// lookAgain says that messages may have been missed.
func (s *Store) lookAgain() {
	s.watches.lookAgain()
	s.changes.doubt()
}

// receive hands what the inbox was told to who watches.
func (s *Store) receive(m message) {
	e := m.event()
	if l, ok := m.lease(s.epoch); ok {
		e.Lease = l
	}
	s.watches.deliver(m.name, e)
}

// watches are the live watches of a Store, by the name of their wait key.
type watches struct {
	mu     sync.Mutex // protects what follows
	byName map[string]*watched
}

// watched is a key that somebody watches.
type watched struct {
	key      string
	channels map[chan store.Event]struct{}
}

// add adds a watch. Its channel has room for one event, the newest.
func (w *watches) add(name, key string) (<-chan store.Event, func()) {
	events := make(chan store.Event, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = make(map[string]*watched)
	}
	on := w.byName[name]
	if on == nil {
		on = &watched{key: key, channels: make(map[chan store.Event]struct{})}
		w.byName[name] = on
	}
	on.channels[events] = struct{}{}
	return events, func() { w.remove(name, events) }
}

func (w *watches) remove(name string, events chan store.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	on := w.byName[name]
	if on == nil {
		return
	}
	delete(on.channels, events)
	if len(on.channels) == 0 {
		delete(w.byName, name)
	}
}

// has reports whether somebody watches name.
func (w *watches) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byName[name] != nil
}

// any reports whether somebody watches anything.
func (w *watches) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byName) > 0
}

// deliver hands e to every watch of name.
func (w *watches) deliver(name string, e store.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	on := w.byName[name]
	if on == nil {
		return
	}
	if !e.Lease.Token.IsZero() {
		e.Lease.Key = on.key
	}
	on.deliver(e)
}

// lookAgain tells every watch that it may have missed something.
func (w *watches) lookAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, on := range w.byName {
		on.deliver(store.Event{})
	}
}

// deliver is called with the lock held, so that nobody else sends: once the
// channel has been emptied there is room.
func (on *watched) deliver(e store.Event) {
	for events := range on.channels {
		select {
		case <-events:
		default:
		}
		events <- e
	}
}
