package cachefill

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/herdgate/herdgate/store"
)

// failure is why a key has no new value, as the fleet is told. Its JSON is the
// data of a store.Failure, documented in docs/format.md.
type failure struct {
	Kind  string   `json:"kind"`
	Text  string   `json:"text,omitempty"`
	Names []string `json:"names,omitempty"` // of Options.Errors
	Count int      `json:"count,omitempty"` // failed loads in a row

	cause error // on the server where it happened
}

// The kinds of failure.
const (
	kindError    = "error"
	kindPanic    = "panic"
	kindTimeout  = "timeout"
	kindCaller   = "caller"    // concerns one call: a context that ended, busy, a store cut off
	kindTooLarge = "too large" // cannot be kept, may be shared in a process
	kindPrivate  = "private"   // must not be kept or shared
)

// maxFailureText bounds what the store keeps of an error's text, in bytes.
const maxFailureText = 512

// maxFailureCount bounds what is believed of a count that was read.
const maxFailureCount = 1 << 20

// uncacheable reports whether the key works but its value cannot be kept.
func (f *failure) uncacheable() bool { return f.Kind == kindTooLarge || f.Kind == kindPrivate }

// forgiven reports whether the next may load at once: a panic, a hang or what
// concerns a caller may be the one server's or the one request's. The second
// in a row is not.
func (f *failure) forgiven() bool {
	return (f.Kind == kindPanic || f.Kind == kindTimeout || f.Kind == kindCaller) && f.Count <= 1
}

// kindOfError tells the errors of a load that concern its caller alone, or the
// server that it ran on, from those of the work.
func kindOfError(err, callerLeft error) string {
	switch {
	case errors.Is(err, ErrLoadTimeout):
		return kindTimeout
	case callerLeft != nil && errors.Is(err, callerLeft),
		errors.Is(err, ErrBusy), errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed):
		return kindCaller
	}
	return kindError
}

// failureOf describes err for the fleet, after count failures before it.
func (s *settings) failureOf(kind string, err error, count int) *failure {
	f := &failure{Kind: kind, Text: err.Error(), Count: count + 1, cause: err}
	if len(f.Text) > maxFailureText {
		f.Text = strings.ToValidUTF8(f.Text[:maxFailureText], "")
	}
	for name, registered := range s.errors {
		if errors.Is(err, registered) {
			f.Names = append(f.Names, name)
		}
	}
	slices.Sort(f.Names)
	return f
}

// coolDown is for how long nobody loads after f. It doubles with every failure
// in a row; servable says whether callers get an older value meanwhile.
func (s *settings) coolDownAfter(f *failure, servable bool) time.Duration {
	switch {
	case f.uncacheable():
		return s.uncacheable
	case f.forgiven():
		return 0
	}
	longest := maxCoolDown
	if servable {
		longest = maxCoolDownStale
	}
	doubled := s.coolDown << min(max(f.Count-1, 0), 16)
	return min(doubled, max(longest, s.coolDown))
}

// memoryFactor is for how many cool-downs a failure is remembered, so that the
// next one in a row is known to be that.
const memoryFactor = 4

// minMemory keeps the count of a forgiven failure for its successor.
const minMemory = 10 * time.Second

// store returns f in the form that stores keep.
func (f *failure) store(coolDown time.Duration) store.Failure {
	data, err := json.Marshal(f)
	if err != nil {
		data = []byte(`{"kind":"` + f.Kind + `"}`)
	}
	return store.Failure{Data: data, CoolDown: coolDown, Memory: max(memoryFactor*coolDown, minMemory)}
}

// decodeFailure reads what failure.store wrote. What cannot be read is nil.
func decodeFailure(data []byte) *failure {
	f := new(failure)
	if len(data) == 0 || json.Unmarshal(data, f) != nil || f.Kind == "" {
		return nil
	}
	f.Count = min(max(f.Count, 0), maxFailureCount)
	return f
}

// err returns f as the error of a caller that may try again after left.
func (s *settings) errOf(f *failure, left time.Duration) error {
	e := &LoadError{Text: f.Text, Count: f.Count, RetryAfter: max(left, 0), causes: []error{ErrLoadFailed}}
	switch f.Kind {
	case kindPanic:
		e.causes = append(e.causes, ErrPanicked)
	case kindTimeout:
		e.causes = append(e.causes, ErrLoadTimeout)
	}
	if f.cause != nil {
		e.causes = append(e.causes, f.cause)
	}
	for _, name := range f.Names {
		if registered := s.errors[name]; registered != nil {
			e.causes = append(e.causes, registered)
		}
	}
	return e
}
