package cachefill

import (
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

// result is what a caller gets.
type result struct {
	value   any
	err     error
	outcome Outcome
	age     time.Duration
	near    bool // out of the near cache
}

// state is how good a stored value is.
type state uint8

const (
	stateMiss      state = iota // none, damaged, or too old for anything
	stateFresh                  // within its time to live
	stateStale                  // within Options.Stale: served while one loads
	stateOld                    // within Options.StaleIfError
	stateNewer                  // of a newer format: not to be overwritten
	stateOtherType              // of another type, in the default cache
)

// stored is an entry as this cache understands it.
type stored struct {
	version store.Token // zero: no entry
	state   state
	value   any
	err     error // ErrNotFound, which is an answer, or ErrType
	created time.Time
	fresh   time.Duration // for how long it was to be fresh
	left    time.Duration // to be fresh; negative once stale
	took    time.Duration
}

// result is v as the answer to a call.
func (v stored) result(now time.Time, o Outcome) result {
	return result{value: v.value, err: v.err, outcome: o, age: max(now.Sub(v.created), 0)}
}

// read makes out what an entry holds for a caller of the given kind.
func (e *engine) read(key string, entry store.Entry, k *kind) stored {
	v := stored{version: entry.Version}
	h, payload, err := decodeHeader(entry.Value)
	switch {
	case errors.Is(err, errNewerFormat):
		v.state = stateNewer
		return v
	case err == nil && h.flags&flagNotFound == 0 && h.typ != k.name && e.set.strictType:
		v.state = stateOtherType
		v.err = fmt.Errorf("%w %q: have %s, want %s", ErrType, key, h.typ, k.name)
		return v
	case err != nil, h.flags&flagNotFound == 0 && (h.typ != k.name || h.codec != k.codec):
		return e.unreadable(key, v, err)
	}
	if h.flags&flagNotFound != 0 {
		v.err = ErrNotFound
	} else if v.value, err = k.decode(payload); err != nil {
		return e.unreadable(key, v, err)
	}
	v.created, v.fresh, v.took = h.created, h.fresh, h.took
	v.left = h.fresh - max(e.now().Sub(h.created), 0)
	v.state = e.set.rate(v.left, entry.Stale)
	return v
}

// unreadable reports v as a miss: what cannot be read is loaded anew.
func (e *engine) unreadable(key string, v stored, err error) stored {
	if err == nil {
		err = errUnreadable
	}
	e.counters.unreadable.Add(1)
	e.set.onEvent(Event{Kind: Unreadable, Key: key, Err: err})
	v.state, v.value, v.err = stateMiss, nil, nil
	return v
}

// rate returns how good a value is that has left to be fresh.
func (s *settings) rate(left time.Duration, marked bool) state {
	if marked {
		left = min(left, 0)
	}
	switch {
	case left > 0:
		return stateFresh
	case -left < s.stale:
		return stateStale
	case -left < s.staleIfError:
		return stateOld
	}
	return stateMiss
}

// servesOnError reports whether v may be served instead of an error.
func (v stored) servesOnError() bool { return v.state == stateStale || v.state == stateOld }
