package storetest

import (
	"errors"
	"fmt"

	"github.com/herdgate/herdgate/store"
)

// call describes a call for the log.
func (d *double) call(what, key string, token store.Token) string {
	for i, k := range d.keys {
		if k == key {
			return fmt.Sprintf("%s on key %d by %s", what, i, name(token))
		}
	}
	return what
}

func name(t store.Token) string {
	if t.IsZero() {
		return "none"
	}
	return t.String()[:6]
}

// grant translates a grant of the store into that of the reference.
func (d *double) grant(key string, grant uint64, real bool) uint64 {
	if !real || grant == 0 {
		return grant
	}
	return d.grants[key][grant]
}

func (d *double) answer(key string, a store.Answer, err error, real bool) string {
	if err != nil {
		return outcome(err)
	}
	switch a.State {
	case store.Found:
		return "found " + entered(a.Entry, nil)
	case store.Granted:
		return fmt.Sprintf("granted %d after %q", d.grant(key, a.Lease.Grant, real), a.Failure.Data)
	case store.Held:
		return fmt.Sprintf("held by %d", d.grant(key, a.Holder.Grant, real))
	case store.Failed:
		return fmt.Sprintf("failed by %q", a.Failure.Data)
	}
	return a.State.String()
}

func (d *double) leased(key string, l store.Lease, err error, real bool) string {
	var held *store.HeldError
	if errors.As(err, &held) {
		return fmt.Sprintf("held by %d", d.grant(key, held.Holder.Grant, real))
	}
	return fmt.Sprintf("%d %s", d.grant(key, l.Grant, real), outcome(err))
}

func entered(e store.Entry, err error) string {
	if err != nil {
		return outcome(err)
	}
	return fmt.Sprintf("%q of %s, stale %t", e.Value, name(e.Version), e.Stale)
}

// outcome names what an error means, whatever it says.
func outcome(err error) string {
	for _, known := range []error{store.ErrMiss, store.ErrHeld, store.ErrLost} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}
