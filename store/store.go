// Package store is the seam between herdgate and the server that an app
// already runs: Redis, memcached, a SQL database, or the process's own memory.
//
// Users make a store from one of the packages below this one and hand it to
// [guard.New] or [cachefill.New]; they never call its methods. Who writes a
// store implements [Leaser], [Cache] or both, adds the optional interfaces
// that its server can keep, and runs package storetest, in which every
// sentence below has a case.
//
// Stores are dumb: bytes, times to live, compare-and-something. Waiting,
// retrying, jitter, freshness, namespaces and metrics live above, once.
//
// [guard.New]: https://pkg.go.dev/github.com/herdgate/herdgate/guard#New
// [cachefill.New]: https://pkg.go.dev/github.com/herdgate/herdgate/cachefill#New
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrMiss says that the store has no entry under the key.
	ErrMiss = errors.New("store: no entry")

	// ErrHeld says that somebody else has a live lease on the key.
	// The error in hand is a [*HeldError], which says who.
	ErrHeld = errors.New("store: lease held by another")

	// ErrLost says that the lease is not, or no longer, the one on the key:
	// it expired, was ended by a Delete, or another one took its place.
	ErrLost = errors.New("store: lease lost")

	// ErrTooLarge says that the server refuses a value for its size.
	// The lease is still live: end it with Yield.
	ErrTooLarge = errors.New("store: value too large")
)

// Leaser grants exclusive, expiring rights to act on a key.
//
// A key and a token are any bytes, a key also the empty one. A store that is a
// Cache too has one lease per key: of those granted by Acquire and by Claim at
// most one is live. Namespaces are the callers' business.
// Every method can be called from many goroutines. Waiting for the server
// ends with ctx at the latest where the driver can do that; callers above
// never rely on it.
type Leaser interface {
	// Acquire grants the lease on req.Key if no live lease is on it.
	//
	// Asked again with the token of the live lease, it returns that lease
	// with the same Grant, the time to live started anew: so a request whose
	// reply was lost can be repeated. Otherwise a grant is new, and never
	// equal to an earlier one of the key.
	//
	// It returns a [*HeldError] if another token holds the key, and an error
	// that wraps [errors.ErrUnsupported] if req.Fence asks for a fence that
	// the store cannot give.
	Acquire(ctx context.Context, req Request) (Lease, error)

	// Renew starts the lease's time to live anew, counted from when the
	// request was sent. It returns the lease with its new Expires, or
	// [ErrLost] if the live lease on the key differs in token or grant.
	// A ttl that is not positive is another error.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)

	// Release ends the lease and wakes who waits for it. It returns
	// [ErrLost], and changes nothing, if the live lease differs in token or
	// grant. A lease that was released is lost.
	Release(ctx context.Context, l Lease) error
}

// Cache keeps entries and the leases to compute them, side by side: a key has
// at most one entry and at most one lease or failure at a time.
type Cache interface {
	// Get returns the entry of key, or [ErrMiss]. It is the hot path: one
	// plain read. A store whose plain read also shows a lease or a failure
	// returns it in a [*MissError], which matches ErrMiss.
	Get(ctx context.Context, key string) (Entry, error)

	// Claim says "the version in req.Seen is not good enough for me, may I
	// compute?" and answers, atomically, the first of these that is true:
	//
	//  1. [Found]: there is an entry, and its version is not req.Seen. Entry
	//     is set; it may be marked stale.
	//  2. [Granted]: the live lease carries req.Token. The same Grant is
	//     returned, the time to live started anew.
	//  3. [Held]: another token has a live lease. Holder is set, and the
	//     caller's Watch on the key, if any, is told how that lease ends.
	//  4. [Failed]: a failure is still cooling down. Failure is set.
	//  5. [Granted]: a new lease, its Grant never equal to an earlier one of
	//     the key. Failure is set if one is still remembered.
	//
	// A zero req.Seen means that the caller found no entry.
	Claim(ctx context.Context, req Request) (Answer, error)

	// Renew is that of [Leaser].
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)

	// Fill stores value as the entry with version l.Token for ttl, ends the
	// lease and wakes who waits for it, atomically. It returns [ErrLost] if
	// the live lease differs in token or grant, and [ErrTooLarge] if the
	// server refuses the size; both leave entry and lease as they are.
	// Repeated after a lost reply, it succeeds again as long as nothing
	// newer is there. A ttl that is not positive is an error.
	//
	// The store may retain value, which must not be modified afterwards.
	Fill(ctx context.Context, l Lease, value []byte, ttl time.Duration) error

	// Yield ends the lease without a value and wakes who waits for it. A
	// failure with data is kept in its place for f.Memory, and answers claims
	// with Failed for f.CoolDown. A store that cannot keep it at the moment
	// (out of memory) just ends the lease. Returns [ErrLost] like Fill.
	Yield(ctx context.Context, l Lease, f Failure) error

	// Delete removes the entry and any failure, ends any lease on the key
	// and wakes who waits for it. After it returned, no Get or Claim answers
	// the old entry and no Fill of a lease granted before succeeds. A key
	// that is not there is no error.
	Delete(ctx context.Context, key string) error
}

// Request asks for a lease.
type Request struct {
	Key string

	// Token is the identity of the caller's attempt, made by [NewToken] and
	// used for no other attempt. A repetition of a request whose reply was
	// lost uses it again.
	Token Token

	// TTL is the lease's time to live. It must be positive; a store rounds
	// it up to what its server can count.
	TTL time.Duration

	// Note is shown to whoever is refused.
	Note Note

	// Seen is the version that the caller found wanting, zero if it found
	// none. Only Claim looks at it.
	Seen Token

	// Repeated says that the caller was refused before and asks again, so
	// that Claim, Acquire and Enqueue may look before they try. It changes no
	// answer.
	Repeated bool

	// Fence asks Acquire for a lease with a fence.
	Fence bool
}

// Validate returns an error that names what no store can work with.
func (r Request) Validate() error {
	switch {
	case r.Token.IsZero():
		return errors.New("store: Request.Token is zero: make one with store.NewToken")
	case r.TTL <= 0:
		return errors.New("store: Request.TTL is " + r.TTL.String() + ": a lease needs a positive time to live")
	}
	return nil
}

// Lease is the right to act on a key until it expires. It is a value: stores
// keep nothing about it in the process.
type Lease struct {
	Key   string
	Token Token  // made by the caller, unique to one acquisition
	Grant uint64 // made by the store, unique among the grants of the key

	// Fence grows with every new lease on the key, for the protected
	// resource to refuse a paused holder (Kleppmann, "How to do distributed
	// locking", 2016). Zero if the store gave none.
	Fence uint64

	// Expires is when the holder must have stopped, by its own monotonic
	// clock, counted from before the request was sent.
	Expires time.Time
}

// Entry is a stored value and what the store knows of it.
type Entry struct {
	Version Token  // the token of the lease that filled it
	Stale   bool   // marked by Expire since it was filled
	Value   []byte // shared: read-only
}

// State says which of the answers to a Claim is meant.
type State uint8

// The answers to a Claim.
const (
	_       State = iota
	Found         // Answer.Entry is newer than what the caller has seen
	Granted       // Answer.Lease is the caller's
	Held          // Answer.Holder is computing
	Failed        // Answer.Failure is cooling down
)

func (s State) String() string {
	names := [...]string{"none", "found", "granted", "held", "failed"}
	if int(s) >= len(names) {
		return "invalid"
	}
	return names[s]
}

// Answer is the answer to a Claim. State says which fields are set.
type Answer struct {
	State   State
	Entry   Entry
	Lease   Lease
	Holder  Holder
	Failure Failure
}

// Holder is who has a lease, as the store shows it to others.
type Holder struct {
	Grant uint64        // which lease
	Note  Note          // zero if it could not be read
	Left  time.Duration // until the lease expires, at most; zero if the store cannot tell
}

// Failure is what a load left behind instead of a value. The zero Failure
// leaves nothing.
type Failure struct {
	// Data is the caller's description of the failure. Empty means that
	// there is none.
	Data []byte

	// CoolDown is for how long claims are refused: for how long still, in an
	// answer; zero once it is over.
	CoolDown time.Duration

	// Memory is for how long the store remembers Data, at least CoolDown,
	// so that who fails next knows how often it has failed. Stores need not
	// set it in answers.
	Memory time.Duration
}

// HeldError is the [ErrHeld] that says who holds the lease.
type HeldError struct {
	Key    string
	Holder Holder
}

func (e *HeldError) Error() string {
	return "store: lease held by " + e.Holder.Note.String()
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// MissError is the [ErrMiss] of a store whose plain read also saw why there is
// no entry. Answer.State is Held or Failed.
type MissError struct {
	Answer Answer
}

func (e *MissError) Error() string {
	return ErrMiss.Error() + " (" + e.Answer.State.String() + ")"
}

// Is reports whether target is [ErrMiss].
func (e *MissError) Is(target error) bool { return target == ErrMiss }
