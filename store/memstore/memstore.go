// Package memstore keeps leases and entries in the memory of one process. It
// is the store to begin with, it needs no server, and it is the reference that
// other stores are compared with.
//
// Make one with [New] and share it: any number of caches and guards of the
// process can use one store. It is not shared with other processes, so it
// stops stampedes within each server only.
//
// The store is bounded. When it is full it drops the entries that were not
// read for longest, roughly; leases, queues and failures are never dropped
// before their time. It starts no goroutine and needs no Close: what is over
// is removed when its key is used, and little by little by every write.
package memstore

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/herdgate/herdgate/store"
)

// Options bound a [Store]. The zero value of each field is its default.
type Options struct {
	// MaxEntries is how many entries are kept at most. Default 100,000;
	// negative means any number.
	MaxEntries int

	// MaxBytes is how much memory the entries may take: keys, values and an
	// estimate of what the store needs beside them. A value that does not
	// fit at all is refused with [store.ErrTooLarge]. Default 128 MiB;
	// negative means any amount.
	MaxBytes int64
}

const (
	defaultMaxEntries = 100_000
	defaultMaxBytes   = 128 << 20
)

// Store keeps entries and leases in memory. It implements [store.Cache],
// [store.Leaser] and every optional interface of package store but those that
// are about servers: it has no shards, and reading many keys at once saves no
// round trip.
//
// Values are retained, not copied: they must not be modified after they were
// stored or after they were read. No call waits, so none looks at its context.
type Store struct {
	shards     [shardCount]shard
	seed       maphash.Seed
	epoch      time.Time // times are kept as durations since then
	maxEntries int64
	maxBytes   int64
	changes    changes

	grants  atomic.Uint64 // the last grant, which is also the last fence
	entries atomic.Int64
	bytes   atomic.Int64
}

var (
	_ store.Cache        = (*Store)(nil)
	_ store.Leaser       = (*Store)(nil)
	_ store.Describer    = (*Store)(nil)
	_ store.Watcher      = (*Store)(nil)
	_ store.Queuer       = (*Store)(nil)
	_ store.Putter       = (*Store)(nil)
	_ store.Expirer      = (*Store)(nil)
	_ store.BatchRenewer = (*Store)(nil)
	_ store.BatchDeleter = (*Store)(nil)
	_ store.Breaker      = (*Store)(nil)
	_ store.Clock        = (*Store)(nil)
)

// New returns an empty store with the bounds in o; nil means the defaults.
func New(o *Options) *Store {
	if o == nil {
		o = &Options{}
	}
	s := &Store{
		seed:       maphash.MakeSeed(),
		epoch:      time.Now(),
		maxEntries: bound(int64(o.MaxEntries), defaultMaxEntries),
		maxBytes:   bound(o.MaxBytes, defaultMaxBytes),
	}
	// Fences grow over a restart of the process too, unless the wall clock
	// was set back meanwhile: nobody takes a million leases per second.
	s.grants.Store(uint64(s.epoch.UnixMicro()))
	for i := range s.shards {
		s.shards[i].records = make(map[string]*record)
	}
	return s
}

func bound(n, def int64) int64 {
	switch {
	case n < 0:
		return math.MaxInt64
	case n == 0:
		return def
	}
	return n
}

// Facts says that the store gives fences and is not durable: a restart of the
// process forgets everything, and a full store drops entries. Leases are kept
// for as long as the process that holds them lives.
func (s *Store) Facts() store.Facts { return store.Facts{Fences: true, Local: true} }

// Now returns the time of the process, which is the store's own.
func (s *Store) Now() time.Time { return time.Now() }

// shardCount is a power of two, and more than the cores of most machines.
const shardCount = 64

// shard is one part of the store, with a lock of its own.
type shard struct {
	mu      sync.RWMutex // protects what follows and the records in it
	records map[string]*record
	ring    []*record // the same records, in no order
	swept   int       // the next of ring to be looked at for what is over
	hand    int       // the next of ring to be looked at for what to drop

	_ [64]byte // keeps the locks of two shards on different cache lines
}

func (s *Store) shard(key string) *shard { return &s.shards[s.index(key)] }

func (s *Store) index(key string) uint64 {
	return maphash.String(s.seed, key) & (shardCount - 1)
}

// now is the monotonic time since the store was made.
func (s *Store) now() time.Duration { return time.Since(s.epoch) }

// after returns when a time to live that starts now is over.
func after(now, ttl time.Duration) time.Duration {
	if ttl > math.MaxInt64-max(now, 0) {
		return math.MaxInt64
	}
	return now + ttl
}
