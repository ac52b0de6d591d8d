package store

import (
	"context"
	"errors"
	"time"
)

// As finds the first value of type T in the chain that begins at s and goes on
// with Unwrap() any, like errors.As. Wrappers that leave keys and results
// alone (metrics, logging) implement Unwrap so that what they wrap keeps its
// capabilities; wrappers that change them must not.
func As[T any](s any) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(interface{ Unwrap() any })
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	var none T
	return none, false
}

// Facts are the promises that differ between stores. The zero value promises
// least.
type Facts struct {
	// Fences: Acquire gives leases with a growing Fence when asked.
	Fences bool

	// Durable: nothing is forgotten before its time, neither by eviction nor
	// by a failover nor by a restart of the server.
	Durable bool

	// MinTTL is the shortest time to live that the server can count.
	// Shorter ones are rounded up to it.
	MinTTL time.Duration

	// Local: no other process sees this store, and calls do not wait.
	Local bool

	// Early is by how much a lease can end before its time to live is over,
	// because the server counts in steps. Lease.Expires allows for it.
	Early time.Duration
}

// Describer is implemented by stores that keep more than the least.
type Describer interface {
	Facts() Facts
}

// FactsOf returns the facts of s, the zero Facts if it states none.
func FactsOf(s any) Facts {
	if d, ok := As[Describer](s); ok {
		return d.Facts()
	}
	return Facts{}
}

// Putter is implemented by stores that can store an entry without a lease.
type Putter interface {
	// Put stores value as the entry with the given version, ends any lease
	// on the key, forgets any failure and wakes who waits, atomically.
	// It returns [ErrTooLarge] if the server refuses the size, and an error
	// if version is zero or ttl is not positive.
	Put(ctx context.Context, key string, version Token, value []byte, ttl time.Duration) error
}

// Put stores value as the entry with the given version. A store without Put
// is asked to Delete, Claim and Fill, until no other lease came between.
func Put(ctx context.Context, c Cache, key string, version Token, value []byte, ttl time.Duration) error {
	if version.IsZero() || ttl <= 0 {
		return errors.New("store: Put needs a version, made by store.NewToken, and a positive time to live")
	}
	if p, ok := As[Putter](c); ok {
		return p.Put(ctx, key, version, value, ttl)
	}
	for {
		err := putByLease(ctx, c, key, version, value, ttl)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

// putByLease is one attempt to put an entry by deleting, claiming and filling.
// ErrLost means that somebody else got in between.
func putByLease(ctx context.Context, c Cache, key string, version Token, value []byte, ttl time.Duration) error {
	if err := c.Delete(ctx, key); err != nil {
		return err
	}
	a, err := c.Claim(ctx, Request{Key: key, Token: version, TTL: putLease})
	if err != nil {
		return err
	}
	if a.State != Granted {
		return ErrLost
	}
	err = c.Fill(ctx, a.Lease, value, ttl)
	if err != nil && !errors.Is(err, ErrLost) {
		err = errors.Join(err, c.Yield(context.WithoutCancel(ctx), a.Lease, Failure{}))
	}
	return err
}

// putLease is for how long a Put by lease may keep others from loading.
const putLease = 2 * time.Second

// Expirer is implemented by stores that can mark an entry stale.
type Expirer interface {
	// Expire sets Stale on the entry of key, forgets any failure, ends any
	// lease on the key and wakes who waits for it, atomically: a load that
	// began before does not make the entry fresh again. A key without an
	// entry is no error.
	Expire(ctx context.Context, key string) error
}

// Expire marks the entry of key stale. In a store that cannot do that, the
// entry is deleted.
func Expire(ctx context.Context, c Cache, key string) error {
	if e, ok := As[Expirer](c); ok {
		return e.Expire(ctx, key)
	}
	return c.Delete(ctx, key)
}

// BatchRenewer is implemented by stores that renew many leases in one round
// trip.
type BatchRenewer interface {
	// RenewAll renews each lease as Renew does. Both results have the length
	// of leases; the leases may belong to different servers, and one that
	// fails must not keep the others from being renewed.
	RenewAll(ctx context.Context, leases []Lease, ttl time.Duration) ([]Lease, []error)
}

// Renewer is the part of Leaser and Cache that keeps leases alive.
type Renewer interface {
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
}

// RenewAll renews the leases, in one round trip if the store can, else one by
// one. Both results have the length of leases.
func RenewAll(ctx context.Context, s Renewer, leases []Lease, ttl time.Duration) ([]Lease, []error) {
	if b, ok := As[BatchRenewer](s); ok {
		return b.RenewAll(ctx, leases, ttl)
	}
	renewed, errs := make([]Lease, len(leases)), make([]error, len(leases))
	for i, l := range leases {
		renewed[i], errs[i] = s.Renew(ctx, l, ttl)
	}
	return renewed, errs
}

// BatchGetter is implemented by stores that read many keys in one round trip.
type BatchGetter interface {
	// GetAll reads each key as Get does. Both results have the length of
	// keys.
	GetAll(ctx context.Context, keys []string) ([]Entry, []error)
}

// BatchDeleter is implemented by stores that delete many keys in one round
// trip.
type BatchDeleter interface {
	// DeleteAll deletes each key as Delete does. The result has the length
	// of keys.
	DeleteAll(ctx context.Context, keys []string) []error
}

// DeleteAll deletes the keys, in one round trip if the store can, else one by
// one. The result has the length of keys.
func DeleteAll(ctx context.Context, c Cache, keys []string) []error {
	if b, ok := As[BatchDeleter](c); ok {
		return b.DeleteAll(ctx, keys)
	}
	errs := make([]error, len(keys))
	for i, key := range keys {
		errs[i] = c.Delete(ctx, key)
	}
	return errs
}

// Breaker is implemented by Leasers that can end a lease by force.
type Breaker interface {
	// Break ends the lease on key, whoever has it, and returns who had it.
	// It returns a zero Holder if there was none.
	Break(ctx context.Context, key string) (Holder, error)
}

// Clock is implemented by stores that know their server's time.
type Clock interface {
	// Now estimates the server's time from what it last said and the
	// process's monotonic clock, without asking it.
	Now() time.Time
}

// Now returns the store's time, or the process's own if the store tells none.
func Now(s any) time.Time {
	if c, ok := As[Clock](s); ok {
		return c.Now()
	}
	return time.Now()
}

// Sharder is implemented by stores that spread their keys over several servers,
// so that one that does not answer is told from the others.
type Sharder interface {
	// Shard names the server of key, without asking anybody. It returns ""
	// if the store takes its servers for one.
	Shard(key string) string
}

// ShardOf returns the name of the server of key, "" if the store names none.
func ShardOf(s any, key string) string {
	if sh, ok := As[Sharder](s); ok {
		return sh.Shard(key)
	}
	return ""
}
