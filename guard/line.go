package guard

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"

	"github.com/herdgate/herdgate/store"
)

// lines lets one caller of the process at a time contend for a name at the
// store; the others wait in line here, first come first served. Whoever has
// the turn passes it on as soon as he has the lease or gives up, so that the
// next contends while the lease is held, beside those of other processes.
type lines struct {
	mu sync.Mutex // protects m and the lists in it
	m  map[string]*line
}

// line is those of one name.
type line struct {
	waiting list.List // of chan struct{}, closed to give the turn

	// held is the store's last refusal, for those who leave without having
	// asked it themselves.
	held atomic.Pointer[store.HeldError]
}

// take waits for the turn. It reports whether somebody was before us. An error
// is the cause of ctx's end or ErrClosed, and means that the turn is not ours;
// the line is returned all the same.
func (ls *lines) take(ctx context.Context, closing <-chan struct{}, name string) (l *line, waited bool, err error) {
	ls.mu.Lock()
	l = ls.m[name]
	if l == nil {
		l = &line{}
		ls.m[name] = l
		ls.mu.Unlock()
		return l, false, nil
	}
	turn := make(chan struct{})
	place := l.waiting.PushBack(turn)
	ls.mu.Unlock()
	select {
	case <-turn:
		return l, true, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-closing:
		err = ErrClosed
	}
	ls.quit(name, place, turn)
	return l, true, err
}

// quit leaves the line. A turn that was given in this very moment is passed
// on, or nobody would have it: TestLaw4TurnOfALeaverIsPassedOn.
func (ls *lines) quit(name string, place *list.Element, turn <-chan struct{}) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	select {
	case <-turn:
		ls.passLocked(name)
	default:
		ls.m[name].waiting.Remove(place)
	}
}

// pass gives the turn to the next in line.
func (ls *lines) pass(name string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.passLocked(name)
}

func (ls *lines) passLocked(name string) {
	l := ls.m[name]
	next := l.waiting.Front()
	if next == nil {
		delete(ls.m, name)
		return
	}
	close(l.waiting.Remove(next).(chan struct{}))
}
