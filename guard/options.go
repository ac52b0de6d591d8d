package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Options of a [Guard]. The zero value of each field is its default.
type Options struct {
	// TTL is for how long a lease lives without being renewed, and so how
	// long a dead holder blocks the others. It is renewed at a third of it.
	// Default 10 s.
	TTL time.Duration

	// MaxHold is how long a lease may be held. When it is over, the lease is
	// no longer renewed and its context is cancelled with [ErrMaxHold],
	// while the lease still lives for a part of its TTL. Default: no limit.
	MaxHold time.Duration

	// Wait is the longest that Acquire and Do wait for their turn.
	// Default: as long as their context allows.
	Wait time.Duration

	// StoreTimeout is how long a call waits for an answer of the store,
	// trying again included, however long its driver would. Default 1 s, or
	// a third of TTL if that is less.
	StoreTimeout time.Duration

	// Fence demands that every lease has a fence, see [Lease.Fence]. New
	// fails if the store gives none.
	Fence bool

	// Durable demands a store that forgets no lease before its time: not by
	// eviction, not by a failover, not by a restart. New fails if the store
	// is none. Without it a lease excludes others for as long as the server
	// keeps its data.
	Durable bool

	// BestEffort turns Fence and Durable into wishes: what the store cannot
	// keep is done without.
	BestEffort bool

	// Namespace keeps names apart that are used for different things: the
	// store's key of a name is "<namespace>:<name>". It has no colon.
	// Default "guard".
	Namespace string

	// Owner is what the app calls itself in the note of a lease.
	// Default: the program's file name.
	Owner string

	// Stack puts the stack of the goroutine that asks for a lease into its
	// note, to see what code holds it. It costs some microseconds.
	Stack bool

	// Logger is told of what cannot be returned to anybody: leases that
	// could not be released and were left to lapse. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultTTL          = 10 * time.Second
	defaultStoreTimeout = time.Second
	defaultNamespace    = "guard"
)

// AcquireOptions are of one lease. The zero value of each field means what the
// [Guard] was made with.
type AcquireOptions struct {
	// TTL, see Options.TTL.
	TTL time.Duration

	// Wait, see Options.Wait. Negative: as long as the context allows.
	// TryAcquire ignores it.
	Wait time.Duration

	// MaxHold, see Options.MaxHold. Negative: no limit.
	MaxHold time.Duration

	// Fence demands a fence for this lease. On a store without fences the
	// call fails with an error that wraps [errors.ErrUnsupported].
	Fence bool

	// Reason says in the note why the lease was taken.
	Reason string

	// Expect says in the note how long the holder expects to need. Who waits
	// at a store without wake-ups polls accordingly. Default: unknown.
	Expect time.Duration

	// AlertAfter says in the note after what time somebody should be told
	// that the lease is still held. Default: never.
	AlertAfter time.Duration
}

// resolved returns o with its defaults, or an error that names what is wrong.
func (o *Options) resolved(s store.Leaser) (Options, error) {
	if o == nil {
		o = &Options{}
	}
	r := *o
	if err := r.validate(s); err != nil {
		return Options{}, err
	}
	if r.TTL == 0 {
		r.TTL = defaultTTL
	}
	if r.StoreTimeout == 0 {
		r.StoreTimeout = min(defaultStoreTimeout, r.TTL/3)
	}
	if r.StoreTimeout >= r.TTL {
		return Options{}, fmt.Errorf("guard: StoreTimeout %v is not shorter than TTL %v: a lease would be over when it is granted", r.StoreTimeout, r.TTL)
	}
	if r.Namespace == "" {
		r.Namespace = defaultNamespace
	}
	if r.Owner == "" {
		r.Owner = filepath.Base(os.Args[0])
	}
	if r.Logger == nil {
		r.Logger = slog.Default()
	}
	return r, nil
}

func (o *Options) validate(s store.Leaser) error {
	if s == nil {
		return errors.New("guard: the store is nil")
	}
	err := notNegative("Options", field{"TTL", o.TTL}, field{"MaxHold", o.MaxHold},
		field{"Wait", o.Wait}, field{"StoreTimeout", o.StoreTimeout})
	if err != nil {
		return err
	}
	if strings.Contains(o.Namespace, ":") {
		return fmt.Errorf("guard: Namespace %q has a colon, so that its keys could be those of another namespace", o.Namespace)
	}
	facts := store.FactsOf(s)
	switch {
	case o.BestEffort:
		return nil
	case o.Fence && !facts.Fences:
		return fmt.Errorf("guard: Fence: %T gives no fences (BestEffort does without): %w", s, errors.ErrUnsupported)
	case o.Durable && !facts.Durable:
		return fmt.Errorf("guard: Durable: %T may forget leases (BestEffort accepts that): %w", s, errors.ErrUnsupported)
	}
	return nil
}

func (o *AcquireOptions) validate() error {
	return notNegative("AcquireOptions", field{"TTL", o.TTL},
		field{"Expect", o.Expect}, field{"AlertAfter", o.AlertAfter})
}

type field struct {
	name  string
	value time.Duration
}

func notNegative(options string, fields ...field) error {
	for _, f := range fields {
		if f.value < 0 {
			return fmt.Errorf("guard: %s.%s is negative: %v", options, f.name, f.value)
		}
	}
	return nil
}

// or returns what a call asks for, or the guard's own if that is zero.
// Negative asks for no limit, which is zero here.
func or(asked, own time.Duration) time.Duration {
	if asked == 0 {
		return own
	}
	return max(asked, 0)
}
