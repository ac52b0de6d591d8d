package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/memcachestore"
)

// TestLaw8DeadServerKeepsNoOtherLeaseFromRenewal: of two servers one stands
// still. Its leases are lost; those on the other are renewed all the time.
func TestLaw8DeadServerKeepsNoOtherLeaseFromRenewal(t *testing.T) {
	dying, living := servertest.Memcached(t), servertest.Memcached(t)
	servers := new(memcache.ServerList)
	if err := servers.SetServers(dying.Addr, living.Addr); err != nil {
		t.Fatal(err)
	}
	client := memcache.NewFromSelector(servers)
	client.MaxIdleConns, client.Timeout = 64, 5*time.Second
	t.Cleanup(func() { _ = client.Close() })
	s, err := memcachestore.New(client, &memcachestore.Options{Selector: servers})
	if err != nil {
		t.Fatal(err)
	}
	const ttl = 4 * time.Second
	g := open(t, s, &Options{TTL: ttl})
	var lost, kept []*Lease
	for i := 0; len(lost) < 2*maxCalls || len(kept) < 2*maxCalls; i++ {
		l := acquired(t, g, fmt.Sprint("lease ", i), nil)
		if s.Shard(l.hold.key()) == dying.Addr {
			lost = append(lost, l)
		} else {
			kept = append(kept, l)
		}
	}
	dying.Pause()
	defer dying.Continue()
	stays := time.After(2 * ttl) // what is not renewed is gone by then
	for _, l := range lost {
		ends(t, l, ErrLost)
	}
	<-stays
	for _, l := range kept {
		if err := l.Err(); err != nil {
			t.Errorf("the lease on %q is lost: %v", l.Name(), err)
		}
		released(t, l)
	}
}
