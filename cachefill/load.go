package cachefill

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/herdgate/herdgate/internal/scope"
	"github.com/herdgate/herdgate/store"
)

// loaded is how a loader ended.
type loaded struct {
	value  any
	err    error
	thrown *thrown
	took   time.Duration
}

// failure is why there is no value, nil if there is one.
func (l loaded) failure() error {
	if l.thrown != nil {
		return l.thrown.err()
	}
	return l.err
}

// thrown is what a loader threw instead of returning.
type thrown struct {
	value  any
	stack  []byte
	goexit bool
}

// rethrow throws it in the goroutine of the call that brought the loader.
func (t *thrown) rethrow() {
	if t.goexit {
		runtime.Goexit()
	}
	panic(t.value)
}

func (t *thrown) err() error {
	if t.goexit {
		return fmt.Errorf("%w: it called runtime.Goexit", ErrPanicked)
	}
	if err, ok := t.value.(error); ok {
		return fmt.Errorf("%w: %w", ErrPanicked, err)
	}
	return fmt.Errorf("%w: %v", ErrPanicked, t.value)
}

// load runs the loader under the lease, or without one if f is local, and
// sees to its ending: value, error, panic, deadline, cancel or Close.
func (f *flight) load(events <-chan store.Event) {
	f.e.counters.loads.Add(1)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(f.lead.ctx), f.e.set.loadTimeout, ErrLoadTimeout)
	defer cancel()
	in := f.inside()
	ctx = context.WithValue(scope.Without(ctx), insideKey{}, in)

	done := make(chan loaded, 1)
	start := time.Now()
	f.e.goLoad(ctx, f.lead.load, done)

	if !f.local {
		keeper := f.keepAlive()
		defer keeper.stop()
	}
	soft := newTimer(f.e.set.softTimeout)
	defer soft.Stop()
	for {
		select {
		case out := <-done:
			if out.err != nil && ctx.Err() != nil && errors.Is(out.err, ctx.Err()) {
				out.err = ErrLoadTimeout // the loader obeyed its deadline
			}
			f.landed(out, in)
			return
		case <-ctx.Done():
			f.e.awaitZombie(done)
			f.landed(loaded{err: ErrLoadTimeout, took: time.Since(start)}, in)
			return
		case <-soft.C:
			f.softened()
		case event := <-events:
			if event.Grant == f.lease.Grant {
				f.lose()
			}
		case <-f.abandoned:
			cancel()
			f.e.awaitZombie(done)
			f.giveUp()
			return
		case <-f.e.killed:
			cancel()
			f.e.awaitZombie(done)
			f.giveUp()
			return
		}
	}
}

// newTimer returns a timer that never fires for d zero.
func newTimer(d time.Duration) *time.Timer {
	if d > 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// inside is what the loader reaches through its context.
func (f *flight) inside() *inside {
	in := &inside{parent: insideOf(f.lead.ctx), engine: f.e, key: f.key}
	if f.old.err == nil && !f.old.version.IsZero() && f.old.value != nil {
		in.old, in.hasOld = f.old.value, true
	}
	return in
}

// goLoad runs the loader in a goroutine of its own, so that nobody has to wait
// for it, and sends how it ended.
func (e *engine) goLoad(ctx context.Context, l loader, done chan<- loaded) {
	e.finish(func() {
		start := time.Now()
		var out loaded
		returned := false
		defer func() {
			if !returned {
				p := recover()
				out.thrown = &thrown{value: p, stack: debug.Stack(), goexit: p == nil}
			}
			out.took = time.Since(start)
			e.counters.loadTime.Add(int64(out.took))
			done <- out
		}()
		out.value, out.err = l.loadAny(ctx)
		returned = true
	})
}

// awaitZombie counts a loader that nobody waits for any longer until it
// returns.
func (e *engine) awaitZombie(done <-chan loaded) {
	e.counters.zombies.Add(1)
	e.finish(func() {
		<-done
		e.counters.zombies.Add(-1)
	})
}

// softened serves the older value to who waits, while the load goes on.
func (f *flight) softened() {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if !f.old.servesOnError() {
		return
	}
	f.answerContent(verdict{result: f.old.result(f.e.now(), Stale)})
	if f.slot.flight == f {
		f.servable, f.soft = true, true
		f.releaseLate() // an invalidation may have come before them: they look for themselves
	}
}

// giveUp ends a load whose callers have all left, or that Close cut short.
func (f *flight) giveUp() {
	f.finishPresent(verdict{result: result{err: ErrClosed}})
	if !f.local {
		_ = f.e.yield(f.key, f.lease, store.Failure{}) // it is retried
	}
}

// lose lets newcomers begin anew: the lease was ended by somebody else. The
// load goes on for those who are present.
func (f *flight) lose() {
	f.sh.mu.Lock()
	again := f.lost
	f.lost = true
	f.detach()
	f.sh.mu.Unlock()
	if again {
		return
	}
	f.e.counters.lost.Add(1)
	f.e.set.onEvent(Event{Kind: LeaseLost, Key: f.key, Err: store.ErrLost})
}
