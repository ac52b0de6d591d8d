package memstore

import (
	"context"
	"slices"

	"github.com/herdgate/herdgate/store"
)

// watch is one subscription to the events of a key.
type watch struct {
	events chan store.Event // holds the newest event
}

// tell replaces what the reader has not yet read by e. The lock of the shard
// makes it the only sender, so it never blocks.
func (w *watch) tell(e store.Event) {
	select {
	case <-w.events:
	default:
	}
	w.events <- e
}

// Watch implements [store.Watcher]. It never fails. Beside the ends of leases
// it tells of every Delete, Put and Expire of the key.
func (s *Store) Watch(_ context.Context, key string) (<-chan store.Event, func(), error) {
	w := &watch{events: make(chan store.Event, 1)}
	v := s.open(key)
	defer v.shut()
	b := v.busy()
	b.watches = append(b.watches, w)
	return w.events, func() { s.unwatch(key, w) }, nil
}

func (s *Store) unwatch(key string, w *watch) {
	v := s.open(key)
	defer v.shut()
	b := v.r.busy
	if b == nil {
		return
	}
	if i := slices.Index(b.watches, w); i >= 0 {
		b.watches = slices.Delete(b.watches, i, i+1)
	}
}
