// Package memcachestore keeps entries and leases in memcached, with the
// classic commands that every version of it and gomemcache speak.
//
//	s, err := memcachestore.New(memcache.New("10.0.0.1:11211", "10.0.0.2:11211"), nil)
//
// What memcached cannot do, the store does not promise ([Store.Facts]): it has
// no fences (its counters begin again with a restart), it forgets under memory
// pressure and when it restarts, it counts time in whole seconds, and it wakes
// nobody, so waiters poll. A forgotten lease or entry is never an error; it
// means "load again".
//
// # Time
//
// Times to live are rounded up to whole seconds, at least two, and cut to
// thirty days, beyond which memcached would take them for a date. A time to
// live of n seconds can end after n-1 on the server, so that the holder of a
// lease counts one second less, from before the request.
//
// # Contexts and errors
//
// gomemcache knows no contexts: a command that was sent ends with its reply or
// with the client's Timeout (500 ms unless set). Methods look at ctx between
// commands only. Set memcache.Client.Timeout to what one reply may take, and
// MaxIdleConns to at least the number of concurrent calls: the default of 2
// means a new connection for nearly every command under load.
//
// An error of a command is wrapped. After a timeout it is unknown whether the
// command took effect; every method may be repeated.
//
// # Where things are
//
// Each key is one item, the value item: an entry, or the lease of the one who
// loads it ("cold"), or a failure. An entry that is being refreshed stays
// where it is; its lease or failure is a second item, the lease item, which
// may be on another server. A lease item names the version that it refreshes,
// and counts only while exactly that entry is in the value item. So whatever
// replaces or removes the entry (Fill, Put, Expire, Delete, eviction) ends a
// refresh with the same single command, and a lease item that was left behind
// blocks nobody. This rests on versions that never come back, as tokens do.
//
// Nothing is ever written over an item but by compare-and-swap after reading
// it, and an entry is never written by add: a command that the network
// delivers late finds its cas id gone.
package memcachestore

import (
	"context"
	"errors"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/store"
)

// Options are the settings of a Store. The zero value of each field is its
// default.
type Options struct {
	// Namespace begins the name of every item, so that apps can share a
	// server. It consists of up to 64 letters, digits, '-', '_' and '.'.
	// Default "herdgate".
	Namespace string

	// Selector is the client's own, if it has several servers: lets one that
	// is dead be told from the others. gomemcache does not show what a client
	// was made with. Default nil: all servers are taken for one.
	//
	//	servers := new(memcache.ServerList)
	//	err := servers.SetServers("10.0.0.1:11211", "10.0.0.2:11211")
	//	…
	//	s, err := memcachestore.New(memcache.NewFromSelector(servers), &memcachestore.Options{Selector: servers})
	Selector memcache.ServerSelector
}

// Store is a [store.Cache] and a [store.Leaser] on memcached. It starts no
// goroutine and needs no closing. All methods may be called concurrently.
type Store struct {
	client   *memcache.Client
	selector memcache.ServerSelector // nil if there is one server
	names    names
	strange  strangeClocks
}

var (
	_ store.Cache     = (*Store)(nil)
	_ store.Leaser    = (*Store)(nil)
	_ store.Putter    = (*Store)(nil)
	_ store.Expirer   = (*Store)(nil)
	_ store.Breaker   = (*Store)(nil)
	_ store.Sharder   = (*Store)(nil)
	_ store.Describer = (*Store)(nil)
)

// New returns a Store on the servers of client. It sends nothing yet. The
// client remains the caller's, who may use it for other things and must not
// change its fields any more. All processes must list the same servers in the
// same order, or they do not see each other's leases.
func New(client *memcache.Client, o *Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("memcachestore: New: client is nil")
	}
	if o == nil {
		o = new(Options)
	}
	n, err := newNames(o.Namespace)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, selector: o.Selector, names: n}, nil
}

// Facts states what memcached can keep: no fences, nothing durable, leases of
// at least two seconds that can end one second early.
func (s *Store) Facts() store.Facts {
	return store.Facts{MinTTL: minSeconds * time.Second, Early: early}
}

// Shard returns the address of the server that has the value item of key. It is
// empty without Options.Selector, and if that knows no server.
func (s *Store) Shard(key string) string {
	if s.selector == nil {
		return ""
	}
	addr, err := s.selector.PickServer(s.names.value(key))
	if err != nil {
		return ""
	}
	return addr.String()
}

// Get returns the entry of key with one plain read. [store.ErrMiss] comes as a
// [*store.MissError] if the read found a lease or a failure that is cooling
// down, so that polling it costs one command.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	var value slot
	err := rounds(ctx, func() (err error) {
		value, err = s.read(s.names.value(key))
		return err
	})
	if err != nil {
		return store.Entry{}, err
	}
	switch value.kind {
	case kindEntry:
		return value.entry(), nil
	case kindLease:
		return store.Entry{}, &store.MissError{Answer: value.held()}
	case kindFailure:
		if a := s.failed(value); a.Failure.CoolDown > 0 {
			return store.Entry{}, &store.MissError{Answer: a}
		}
	}
	return store.Entry{}, store.ErrMiss
}

// Delete removes the value item, whatever it is. That is one command and ends
// a refresh too:
//
//  1. R claims a refresh of version 1: its lease item names version 1.
//  2. D deletes the value item and returns.
//  3. R fills: the value item is not version 1 any more, or its cas id is
//     gone. R is told ErrLost, the old value does not come back.
//  4. N claims: the value item is free, R's lease item is not looked at.
//
// TestLaw2DeleteEndsRefresh pins this, TestLaw2DeleteDuringFill the cas.
func (s *Store) Delete(ctx context.Context, key string) error {
	return rounds(ctx, func() error { return s.remove(s.names.value(key)) })
}
