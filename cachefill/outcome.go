package cachefill

import (
	"strconv"
	"time"
)

// Outcome says what happened to one call.
type Outcome uint8

const (
	_ Outcome = iota

	// Fresh: the value was there and fresh.
	Fresh
	// Stale: an older value was served, while somebody loads or because the
	// load failed or was not over in time.
	Stale
	// Loaded: this call's loader made the value.
	Loaded
	// Waited: another call's load, in this process or elsewhere, made the
	// value while this call waited.
	Waited
	// Failed: there is an error instead of a value.
	Failed
	// Degraded: the store did not answer; the value was loaded here and not
	// stored, or came out of the near cache.
	Degraded
)

var outcomeNames = [...]string{"none", "fresh", "stale", "loaded", "waited", "failed", "degraded"}

func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return "outcome(" + strconv.Itoa(int(o)) + ")"
	}
	return outcomeNames[o]
}

// Result is a value and what is known of it.
type Result[V any] struct {
	Value   V
	Outcome Outcome
	Age     time.Duration // since it was loaded, by the store's time; never negative
}

// EventKind says what an [Event] is about.
type EventKind uint8

const (
	_ EventKind = iota

	// LoadEnded: a load returned, failed or reached its deadline.
	LoadEnded
	// LeaseLost: a load's lease was ended by an invalidation, by somebody
	// else's claim after it expired, or by a store that forgot it.
	LeaseLost
	// StoreFailed: the store did not answer, or with an error.
	StoreFailed
	// StoreBreaker: Options.Degrade rules from now on, or (Err nil) no longer.
	StoreBreaker
	// NotStored: a value was returned to its callers but cannot be kept.
	NotStored
	// Unreadable: a stored value could not be decoded and counts as a miss.
	Unreadable
	// InvalidateRetried: a background attempt to invalidate ended; with Err
	// it goes on.
	InvalidateRetried
	// LoadPanicked: a loader panicked. Err holds the value and the stack.
	LoadPanicked
)

var eventNames = [...]string{"none", "load ended", "lease lost", "store failed", "store breaker",
	"not stored", "unreadable", "invalidate retried", "load panicked"}

func (k EventKind) String() string {
	if int(k) >= len(eventNames) {
		return "event(" + strconv.Itoa(int(k)) + ")"
	}
	return eventNames[k]
}

// Event is something that happened in a cache and that no single caller is
// told, for Options.OnEvent.
type Event struct {
	Kind EventKind
	Key  string
	Err  error         // nil if it went well
	Took time.Duration // how long the load, or the store's reply, took
}
