package cachefill_test

import (
	"sync"

	"github.com/herdgate/herdgate/cachefill"
)

// eventLog keeps what OnEvent was told.
type eventLog struct {
	mu     sync.Mutex // protects events
	events []cachefill.Event
}

func (l *eventLog) add(e cachefill.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// of returns the events of one kind.
func (l *eventLog) of(kind cachefill.EventKind) (events []cachefill.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			events = append(events, e)
		}
	}
	return events
}
