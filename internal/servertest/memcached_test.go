package servertest_test

import (
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/internal/servertest"
)

func TestMemcachedRestartsEmptyOnItsPort(t *testing.T) {
	server := servertest.Memcached(t)
	client := memcache.New(server.Addr)
	if err := client.Set(&memcache.Item{Key: "k", Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	client = memcache.New(server.Addr) // without connections to the old one
	if _, err := client.Get("k"); err != memcache.ErrCacheMiss {
		t.Errorf("after a restart Get returned %v, want a miss", err)
	}
}

func TestMemcachedReportsWhyItDoesNotStart(t *testing.T) {
	_, err := servertest.StartMemcached(t.Context(), "-m", "nonsense", "--no-such-option")
	if err == nil {
		t.Fatal("a server with a wrong option started")
	}
}
