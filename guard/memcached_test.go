package guard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memcachestore"
)

// memcachedLeaser returns a store with a client of its own.
func memcachedLeaser(t *testing.T, addr string) store.Leaser {
	t.Helper()
	client := memcache.New(addr)
	client.MaxIdleConns = 16
	t.Cleanup(func() { _ = client.Close() })
	s, err := memcachestore.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLaw1MemcachedOneHolder: callers of several guards count up an
// unprotected number. Without wake-ups they poll.
func TestLaw1MemcachedOneHolder(t *testing.T) {
	server := servertest.Memcached(t)
	var guards []*Guard
	for range 2 {
		guards = append(guards, open(t, memcachedLeaser(t, server.Addr), nil))
	}
	const callers, rounds = 8, 10
	count := 0
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range rounds {
				err := guards[i%len(guards)].Do(t.Context(), "x", func(context.Context) error { count++; return nil })
				if err != nil {
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if count != callers*rounds {
		t.Errorf("counted %d of %d", count, callers*rounds)
	}
}

// TestMemcachedLeaseIsRenewedAndLost: it outlives its time by renewal; when
// the server forgets it, the holder knows at the next one.
func TestMemcachedLeaseIsRenewedAndLost(t *testing.T) {
	server := servertest.Memcached(t)
	g := open(t, memcachedLeaser(t, server.Addr), &Options{TTL: 3 * time.Second})
	l := acquired(t, g, "x", nil)
	other := open(t, memcachedLeaser(t, server.Addr), nil)
	_, err := other.Acquire(t.Context(), "x", &AcquireOptions{Wait: 4 * time.Second})
	wantErr(t, err, ErrHeld)
	if l.Err() != nil {
		t.Fatalf("lost: %v", l.Err())
	}
	server.Kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends(t, l, ErrLost)
	wantErr(t, l.Release(t.Context()), ErrLost)
	released(t, acquired(t, other, "x", nil))
}

// TestLaw13MemcachedGivesNoFence: so asking for one fails.
func TestLaw13MemcachedGivesNoFence(t *testing.T) {
	server := servertest.Memcached(t)
	s := memcachedLeaser(t, server.Addr)
	for _, o := range []Options{{Fence: true}, {Durable: true}} {
		_, err := New(s, &o)
		wantErr(t, err, errors.ErrUnsupported)
		o.BestEffort = true
		released(t, acquired(t, open(t, s, &o), "x", nil))
	}
}
