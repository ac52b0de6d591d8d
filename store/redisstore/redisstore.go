// Package redisstore keeps entries and leases in Redis or Valkey, so that all
// servers of an app share them. Begin with [New].
//
// It works with every client of go-redis: a single server, Sentinel, Cluster
// and Ring. A read is one plain GET; everything else is one script. Waiting
// processes are woken over one permanent subscription per process.
//
// The caveat: Redis replicates asynchronously and, unless told otherwise, may
// evict or forget on restart what it acknowledged. Each of these loses leases:
// for a cache that costs an extra load, for mutual exclusion it means two
// holders. See [Options].Fences.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store"
)

var (
	_ store.Cache        = (*Store)(nil)
	_ store.Leaser       = (*Store)(nil)
	_ store.Watcher      = (*Store)(nil)
	_ store.Announcer    = (*Store)(nil)
	_ store.Queuer       = (*Store)(nil)
	_ store.Putter       = (*Store)(nil)
	_ store.Expirer      = (*Store)(nil)
	_ store.BatchRenewer = (*Store)(nil)
	_ store.BatchDeleter = (*Store)(nil)
	_ store.Breaker      = (*Store)(nil)
	_ store.Clock        = (*Store)(nil)
	_ store.Describer    = (*Store)(nil)
)

// ErrClosed says that the Store was closed: it wakes nobody any more.
var ErrClosed = errors.New("redisstore: closed")

// Options are the settings of a Store. The zero value of each is its default.
type Options struct {
	// Namespace is put before every key and channel, so that several apps or
	// versions can share a server: letters, digits and _-.:/, at most 64
	// bytes. Default "herdgate".
	Namespace string

	// MaxValue is the length in bytes up to which values are sent to the
	// server; longer ones are refused with [store.ErrTooLarge]. Redis serves
	// nobody else while it moves a large value. Default 64 MiB; the server
	// itself refuses more than its proto-max-bulk-len, by default 512 MiB.
	MaxValue int

	// Fences states that the client's server is the only one, and keeps what
	// it acknowledged: no replica takes its place, nothing is evicted. Then
	// leases carry fences when asked. New asks the server, once, and returns
	// an error that wraps [errors.ErrUnsupported] if it sees otherwise.
	//
	// A fence is the server's time in µs, or one more than the key's last
	// fence if the clock went back. The last fence is remembered for 30 days.
	// Default: no fences.
	Fences bool
}

// defaultMaxValue is the default of Options.MaxValue.
const defaultMaxValue = 64 << 20

// Store is a [store.Cache] and a [store.Leaser] on Redis. It can be used by
// many goroutines.
type Store struct {
	rdb       redis.UniversalClient
	namespace string
	maxValue  int
	facts     store.Facts
	inbox     string // the channel of this Store
	gone      string // the channel of announcements
	pulse     pulse
	epoch     time.Time // the Store's own clock starts here

	clock   clock
	watches watches
	changes changes
	limit   limit

	ctx   context.Context // ends with Close
	close context.CancelFunc
	mu    sync.Mutex              // protects what follows
	feeds map[*redis.Client]*feed // by shard of a ring, else the one of nil
}

// New returns a store on the servers of rdb, which stays the caller's and has
// to be open for as long as the Store is used. Options may be nil. New sends
// nothing to the server unless Options.Fences is set, when it waits for it up
// to one second.
//
// It refuses clients that read from replicas or from a cache of their own,
// naming the option: a reader could get what was invalidated before.
func New(rdb redis.UniversalClient, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Namespace == "" {
		o.Namespace = "herdgate"
	}
	if o.MaxValue == 0 {
		o.MaxValue = defaultMaxValue
	}
	if err := errors.Join(checkClient(rdb), checkNamespace(o.Namespace), checkMaxValue(o.MaxValue)); err != nil {
		return nil, err
	}
	facts := store.Facts{MinTTL: time.Millisecond}
	if o.Fences {
		durable, err := checkFences(rdb)
		if err != nil {
			return nil, err
		}
		facts.Fences, facts.Durable = true, durable
	}
	s := &Store{
		rdb:       rdb,
		namespace: o.Namespace,
		maxValue:  o.MaxValue,
		facts:     facts,
		inbox:     o.Namespace + inboxName + store.NewToken().String(),
		gone:      o.Namespace + goneName,
		pulse:     defaultPulse,
		epoch:     time.Now(),
		feeds:     make(map[*redis.Client]*feed),
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s, nil
}

func checkMaxValue(n int) error {
	if n < 0 {
		return fmt.Errorf("redisstore: Options.MaxValue is %d", n)
	}
	return nil
}

// Close ends the subscription, waits for its goroutines and returns nil.
// A heartbeat that the server does not answer ends by the client's own
// timeouts. Watches get no events any more; everything else goes on working.
// The client stays open.
func (s *Store) Close() error {
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.wait()
	}
	return nil
}

// Facts returns what the store promises. Durable is true if Options.Fences is
// set and the server, asked by New, syncs every write to an append-only file.
func (s *Store) Facts() store.Facts { return s.facts }

// Now estimates the server's time. It is the process's own until a script has
// returned for the first time. On a cluster or ring it is that of one of them.
func (s *Store) Now() time.Time { return s.clock.now() }
