package memcachestore

import (
	"testing"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, servertest.Memcached(t).Addr)
}

// TestConformanceOnTwoServers has an entry and its refresh lease on different
// servers, in half of the cases.
func TestConformanceOnTwoServers(t *testing.T) {
	t.Parallel()
	conform(t, servertest.Memcached(t).Addr, servertest.Memcached(t).Addr)
}

func conform(t *testing.T, addresses ...string) {
	open := func(t testing.TB) *Store {
		s, _ := newStore(t, addresses...)
		return s
	}
	storetest.Test(t, storetest.Backend{
		Cache:    func(t testing.TB) store.Cache { return open(t) },
		Leaser:   func(t testing.TB) store.Leaser { return open(t) },
		Second:   func(t testing.TB, _ any) any { return open(t) },
		Facts:    store.Facts{MinTTL: 2 * time.Second, Early: time.Second},
		Puts:     true,
		Expires:  true,
		Breaks:   true,
		Shards:   len(addresses) > 1,
		MaxValue: 2 << 20,

		ClaimsInSteps: true,
	})
}
