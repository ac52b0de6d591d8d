package memcachestore

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
)

// TestLaw9ShardHasTheKey: the server that Shard names is the one that has the
// value item.
func TestLaw9ShardHasTheKey(t *testing.T) {
	t.Parallel()
	addresses := []string{servertest.Memcached(t).Addr, servertest.Memcached(t).Addr}
	s, _ := newStore(t, addresses...)
	named := map[string]bool{}
	for i := range 50 {
		key := fmt.Sprint("key ", i)
		fill(t, s, key, "one")
		named[s.Shard(key)] = true
		client := memcache.New(s.Shard(key))
		if _, err := client.Get(s.names.value(key)); err != nil {
			t.Errorf("%s on %s: %v", key, s.Shard(key), err)
		}
		_ = client.Close()
	}
	slices.Sort(addresses)
	if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, addresses) {
		t.Errorf("the servers are named %q, want %q", got, addresses)
	}
}

// TestShardWithoutName: a store that does not know its servers takes them for
// one.
func TestShardWithoutName(t *testing.T) {
	t.Parallel()
	client := memcache.New("127.0.0.1:1", "127.0.0.1:2")
	for _, o := range []*Options{nil, {Selector: new(memcache.ServerList)}} {
		s, err := New(client, o)
		is(t, "New", err, nil)
		if got := s.Shard("key"); got != "" {
			t.Errorf("%+v: the server is named %q", o, got)
		}
	}
}
