package cachefill

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Options are the settings of a [Cache]. The zero value of each field means
// its default; durations that may be switched off are so by a negative value
// where the field says so.
type Options[V any] struct {
	// Namespace is the prefix of the cache's keys in the store: caches that
	// share a store and a namespace share their entries. Letters, digits,
	// '.', '_' and '-'. Default "fill".
	Namespace string

	// TTL is for how long a loaded value is fresh, unless its loader calls
	// [SetTTL]. Default 1 min.
	TTL time.Duration

	// Stale is for how long after TTL a value is still served at once while
	// one load refreshes it. Default 0: never.
	Stale time.Duration

	// StaleIfError is for how long after TTL a value is served when its load
	// failed, is still cooling down, takes longer than SoftTimeout, or was
	// waited for in vain. Default: as long as Stale.
	StaleIfError time.Duration

	// NotFoundTTL is for how long it is remembered that a loader returned
	// [ErrNotFound]. Default: the smaller of TTL and 10 s. Negative: not at
	// all.
	NotFoundTTL time.Duration

	// Jitter is the largest part by which a time to live is shortened at
	// random, so that keys filled together do not expire together.
	// Default 0.1. Negative: none.
	Jitter float64

	// Early scales how soon before its expiry a hit may refresh a value,
	// the beta of XFetch (Vattani, Chierichetti, Lowenstein, "Optimal
	// Probabilistic Cache Stampede Prevention", VLDB 2015). The measured
	// load time decides when, the lease decides who. Default 1. Negative:
	// never before expiry.
	Early float64

	// Lease is the time to live of a lease on a load, renewed at a third
	// of it: for how long a key is blocked after a process died loading it.
	// Default 2 s, or the store's shortest plus 1 s.
	Lease time.Duration

	// LoadTimeout is the hard deadline of a load: its context ends, its
	// callers get [ErrLoadTimeout], its lease and its slot are given back,
	// whether or not the loader returns. Default 30 s.
	LoadTimeout time.Duration

	// SoftTimeout is after what time of loading callers are served a value
	// that StaleIfError still allows, while the load goes on. Default: never.
	SoftTimeout time.Duration

	// CancelAbandoned cancels a load when all of its callers have left.
	// By default it goes on and fills the cache.
	CancelAbandoned bool

	// Wait is how long a call waits for a load, its own or another's, never
	// past its context. It may end up to a sixteenth earlier, because
	// callers share timers. Default 10 s.
	Wait time.Duration

	// AfterWait says what a call does when Wait is over and StaleIfError
	// allows no value. Default [Busy].
	AfterWait WaitEnding

	// MaxLoads is how many loads of this cache run at once in this process.
	// Loads inside loads do not count. Default 4 × GOMAXPROCS.
	MaxLoads int

	// CoolDown is for how long a failed load keeps everybody from loading
	// again. It doubles with every further failure, up to 30 s while there
	// is a value that StaleIfError allows, to 5 s otherwise. Default 1 s.
	CoolDown time.Duration

	// Uncacheable is for how long the fleet remembers that a key's value
	// cannot or must not be kept. Default 30 s.
	Uncacheable time.Duration

	// StoreBudget is how long one call may wait for replies of the store,
	// whatever the driver's own timeouts and retries are. Default 100 ms.
	StoreBudget time.Duration

	// Degrade says what a call does when the store does not answer.
	// Default [LoadLocally].
	Degrade Degrade

	// Near is how many entries are kept in this process, decoded, to be
	// served without asking the store. Default 0: none.
	Near int

	// NearTTL is for how long a near entry is served: the longest for which
	// this process may miss an invalidation by another one. Stores that
	// announce changes make it some milliseconds while their subscription is
	// up. Default 1 s.
	NearTTL time.Duration

	// Clone copies a value before it is handed to a caller. By default
	// callers share values, which are then read-only.
	Clone func(V) V

	// Codec turns values into bytes. Default [JSON].
	Codec Codec[V]

	// CompressAbove is from what encoded size on, in bytes, values are
	// compressed (DEFLATE). Default 0: never.
	CompressAbove int

	// Errors names the errors that keep their identity across servers: a
	// failure that matches one of them by errors.Is matches it on every
	// server that has it registered under the same name.
	Errors map[string]error

	// Owner is the app's name for itself in the notes of its leases.
	// Default: the program's name.
	Owner string

	// OnEvent is told of loads, losses and faults, see [Event]. It is called
	// from the goroutines that serve callers and must return soon.
	OnEvent func(Event)

	// Logger receives what cannot be returned to anybody: a panic whose
	// caller had left, the warning of the in-memory default. Default
	// slog.Default().
	Logger *slog.Logger
}

// WaitEnding is how a call ends whose Wait is over.
type WaitEnding uint8

const (
	// Busy returns [ErrBusy].
	Busy WaitEnding = iota
	// LoadAnyway runs an own load that is not stored.
	LoadAnyway
)

// Degrade is what a call does while the store does not answer.
type Degrade uint8

const (
	// LoadLocally loads in this process, coalesced and within MaxLoads, and
	// stores nothing.
	LoadLocally Degrade = iota
	// ServeHeld serves what the near cache holds, as long as StaleIfError
	// allows, and else loads locally.
	ServeHeld
	// FailFast returns [ErrUnavailable].
	FailFast
)

const (
	defaultNamespace   = "fill"
	defaultTTL         = time.Minute
	defaultNotFoundTTL = 10 * time.Second
	defaultJitter      = 0.1
	defaultLease       = 2 * time.Second
	defaultLoadTimeout = 30 * time.Second
	defaultWait        = 10 * time.Second
	defaultCoolDown    = time.Second
	defaultUncacheable = 30 * time.Second
	defaultStoreBudget = 100 * time.Millisecond
	defaultNearTTL     = time.Second

	// A failing key is tried again at least this often.
	maxCoolDownStale = 30 * time.Second // while stale values are served
	maxCoolDown      = 5 * time.Second  // while callers get errors
)

// settings are the Options of any V after defaults.
type settings struct {
	namespace     string
	ttl           time.Duration
	stale         time.Duration
	staleIfError  time.Duration
	notFoundTTL   time.Duration
	jitter        float64
	early         float64
	lease         time.Duration
	loadTimeout   time.Duration
	softTimeout   time.Duration
	strictType    bool // another stored type is ErrType, not a miss
	cancel        bool // cancel abandoned loads
	wait          time.Duration
	afterWait     WaitEnding
	maxLoads      int
	coolDown      time.Duration
	uncacheable   time.Duration
	budget        time.Duration
	degrade       Degrade
	near          int
	nearTTL       time.Duration
	compressAbove int
	errors        map[string]error
	owner         string
	onEvent       func(Event)
	logger        *slog.Logger
}

// settle returns the settings that o asks for on a store with these facts.
func (o *Options[V]) settle(facts store.Facts) (settings, error) {
	if o == nil {
		o = new(Options[V])
	}
	if err := o.validate(facts); err != nil {
		return settings{}, err
	}
	s := settings{
		namespace:     or(o.Namespace, defaultNamespace),
		ttl:           or(o.TTL, defaultTTL),
		stale:         o.Stale,
		staleIfError:  or(o.StaleIfError, o.Stale),
		jitter:        max(or(o.Jitter, defaultJitter), 0),
		early:         max(or(o.Early, 1), 0),
		lease:         or(o.Lease, defaultLease),
		loadTimeout:   or(o.LoadTimeout, defaultLoadTimeout),
		softTimeout:   o.SoftTimeout,
		cancel:        o.CancelAbandoned,
		wait:          or(o.Wait, defaultWait),
		afterWait:     o.AfterWait,
		maxLoads:      or(o.MaxLoads, 4*runtime.GOMAXPROCS(0)),
		coolDown:      or(o.CoolDown, defaultCoolDown),
		uncacheable:   or(o.Uncacheable, defaultUncacheable),
		budget:        or(o.StoreBudget, defaultStoreBudget),
		degrade:       o.Degrade,
		near:          o.Near,
		nearTTL:       or(o.NearTTL, defaultNearTTL),
		compressAbove: o.CompressAbove,
		errors:        o.Errors,
		owner:         or(o.Owner, programName()),
		onEvent:       o.OnEvent,
		logger:        o.Logger,
	}
	s.notFoundTTL = max(or(o.NotFoundTTL, min(s.ttl, defaultNotFoundTTL)), 0)
	if o.Lease == 0 && facts.MinTTL > 0 {
		s.lease = max(s.lease, facts.MinTTL+time.Second)
	}
	if s.onEvent == nil {
		s.onEvent = func(Event) {}
	}
	return s, nil
}

var namespacePattern = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// validate names the first setting that cannot be meant.
func (o *Options[V]) validate(facts store.Facts) error {
	durations := []struct {
		name  string
		value time.Duration
	}{
		{"TTL", o.TTL}, {"Stale", o.Stale}, {"StaleIfError", o.StaleIfError},
		{"Lease", o.Lease}, {"LoadTimeout", o.LoadTimeout}, {"SoftTimeout", o.SoftTimeout},
		{"Wait", o.Wait}, {"CoolDown", o.CoolDown}, {"Uncacheable", o.Uncacheable},
		{"StoreBudget", o.StoreBudget}, {"NearTTL", o.NearTTL},
	}
	for _, d := range durations {
		if d.value < 0 {
			return fmt.Errorf("cachefill: Options.%s is %v: it must not be negative", d.name, d.value)
		}
	}
	loadTimeout := or(o.LoadTimeout, defaultLoadTimeout)
	switch {
	case !namespacePattern.MatchString(o.Namespace):
		return fmt.Errorf("cachefill: Options.Namespace is %q: use letters, digits, '.', '_' and '-'", o.Namespace)
	case o.MaxLoads < 0:
		return fmt.Errorf("cachefill: Options.MaxLoads is %d: at least one load must be able to run", o.MaxLoads)
	case o.Near < 0:
		return fmt.Errorf("cachefill: Options.Near is %d: use 0 for no near cache", o.Near)
	case o.Near == 0 && o.NearTTL > 0:
		return errors.New("cachefill: Options.NearTTL is set, but Options.Near is 0: say how many entries to keep")
	case o.Near == 0 && o.Degrade == ServeHeld:
		return errors.New("cachefill: Options.Degrade is ServeHeld, but Options.Near is 0: there is nothing to serve from")
	case !(o.Jitter < 1): // also NaN
		return fmt.Errorf("cachefill: Options.Jitter is %v: it is a part of the time to live, below 1", o.Jitter)
	case math.IsNaN(o.Early):
		return errors.New("cachefill: Options.Early is not a number")
	case o.CompressAbove < 0:
		return fmt.Errorf("cachefill: Options.CompressAbove is %d: use 0 for no compression", o.CompressAbove)
	case o.SoftTimeout >= loadTimeout:
		return fmt.Errorf("cachefill: Options.SoftTimeout (%v) must be shorter than Options.LoadTimeout (%v)", o.SoftTimeout, loadTimeout)
	case o.SoftTimeout > 0 && o.StaleIfError <= o.Stale:
		return fmt.Errorf("cachefill: Options.SoftTimeout is set, but Options.StaleIfError (%v) is not longer than Options.Stale (%v): there is nothing to serve then", o.StaleIfError, o.Stale)
	case o.AfterWait > LoadAnyway:
		return fmt.Errorf("cachefill: Options.AfterWait is %d: use Busy or LoadAnyway", o.AfterWait)
	case o.Degrade > FailFast:
		return fmt.Errorf("cachefill: Options.Degrade is %d: use LoadLocally, ServeHeld or FailFast", o.Degrade)
	case o.Lease > 0 && o.Lease < facts.MinTTL:
		return fmt.Errorf("cachefill: Options.Lease is %v: this store cannot count less than %v", o.Lease, facts.MinTTL)
	}
	for name, err := range o.Errors {
		if name == "" || err == nil {
			return fmt.Errorf("cachefill: Options.Errors[%q] is %v: give every error a name", name, err)
		}
	}
	return nil
}

// or returns value, or fallback if value is zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func programName() string {
	name, err := os.Executable()
	if err != nil {
		return "herdgate"
	}
	for i := len(name) - 1; i >= 0; i-- {
		if os.IsPathSeparator(name[i]) {
			return name[i+1:]
		}
	}
	return name
}

// log returns the logger for what cannot be returned.
func (s *settings) log() *slog.Logger {
	if s.logger != nil {
		return s.logger
	}
	return slog.Default()
}
