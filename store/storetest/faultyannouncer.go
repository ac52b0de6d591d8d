package storetest

import (
	"context"

	"github.com/herdgate/herdgate/store"
)

type faultyAnnouncer struct {
	link
	inner store.Announcer
}

func (a *faultyAnnouncer) Announce(ctx context.Context, f func(store.Change)) (func(), error) {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	inner := func() {}
	stop := func() { cancel(); inner() }
	_, err := do(ctx, a.faults, Op{Name: "Announce"}, func() (_ struct{}, err error) {
		s, err := a.inner.Announce(ctx, func(c store.Change) { a.pass(live, c, f) })
		if err == nil {
			inner = s
		}
		return struct{}{}, err
	})
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// pass hands c to f through the fault that the injector wants for it, until
// live ends. One that is late is passed on by a goroutine: who tells must not
// wait.
func (a *faultyAnnouncer) pass(live context.Context, c store.Change, f func(store.Change)) {
	if live.Err() != nil {
		return
	}
	fault := a.inject(Op{Name: "Change", Key: c.Key})
	if fault == (Fault{}) {
		f(c)
		return
	}
	go func() {
		if fault.happen(live) != nil {
			c = store.Change{All: true}
		}
		if live.Err() == nil {
			f(c)
		}
	}()
}
