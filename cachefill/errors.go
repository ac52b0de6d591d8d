package cachefill

import (
	"errors"
	"time"
)

var (
	// ErrNotFound is what a loader returns, or wraps, to say that there is
	// nothing under the key. It is an answer, not a failure: it is kept for
	// Options.NotFoundTTL, and everybody gets an error that matches it.
	ErrNotFound = errors.New("cachefill: not found")

	// ErrNotModified is what a loader returns to say that the value it got
	// from [Old] is still right. The old value is fresh again.
	ErrNotModified = errors.New("cachefill: not modified")

	// ErrMiss says that [Cache.Peek] found no value.
	ErrMiss = errors.New("cachefill: no value")

	// ErrBusy says that Options.Wait was over before a value was there.
	ErrBusy = errors.New("cachefill: waited too long for a load")

	// ErrLoadTimeout says that a load took longer than Options.LoadTimeout.
	ErrLoadTimeout = errors.New("cachefill: load took too long")

	// ErrLoadFailed matches every [*LoadError]: a load failed elsewhere or
	// before, and is not tried again yet.
	ErrLoadFailed = errors.New("cachefill: load failed")

	// ErrPanicked says that a loader panicked, repeatedly, for other callers.
	// The caller whose loader it was got the panic itself.
	ErrPanicked = errors.New("cachefill: loader panicked")

	// ErrRecursive says that a loader asked for the key that it is loading.
	ErrRecursive = errors.New("cachefill: key loaded inside its own load")

	// ErrUnavailable says that the store did not answer, under
	// Options.Degrade FailFast, or that an invalidation did not reach it yet.
	ErrUnavailable = errors.New("cachefill: store unavailable")

	// ErrType says that the value under the key is of another type.
	ErrType = errors.New("cachefill: value of another type under the key")

	// ErrClosed says that the cache was closed.
	ErrClosed = errors.New("cachefill: cache closed")

	// ErrNilLoader says that Get, Fetch or Refresh was called without one.
	ErrNilLoader = errors.New("cachefill: loader is nil")
)

// LoadError is the failure of a load that another server ran, or that this one
// ran a moment ago, handed to a caller while the key cools down. It matches
// [ErrLoadFailed] and, on the server where the load ran, the loader's own
// error; on others those errors that Options.Errors registers.
type LoadError struct {
	Text       string        // what the loader's error said
	Count      int           // how many loads have failed in a row
	RetryAfter time.Duration // when the key is loaded again at the earliest

	causes []error
}

func (e *LoadError) Error() string { return ErrLoadFailed.Error() + ": " + e.Text }

// Unwrap returns the errors that e matches.
func (e *LoadError) Unwrap() []error { return e.causes }
