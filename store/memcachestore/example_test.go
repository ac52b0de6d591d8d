package memcachestore_test

import (
	"log"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/herdgate/herdgate/store/memcachestore"
)

func ExampleNew() {
	client := memcache.New("10.0.0.1:11211", "10.0.0.2:11211")
	client.Timeout = 100 * time.Millisecond // for one reply
	client.MaxIdleConns = 64                // at least the concurrent calls

	s, err := memcachestore.New(client, &memcachestore.Options{Namespace: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	_ = s // give it to guard.New or cachefill.New
}
