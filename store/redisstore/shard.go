package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store"
)

var _ store.Sharder = (*Store)(nil)

// Shard implements [store.Sharder]: the address of the master or shard that
// has key, as far as the client knows. A cluster client learns the layout with
// its first command; until then, and on a single server, all keys share a name.
func (s *Store) Shard(key string) string {
	var client *redis.Client
	var err error
	switch c := s.rdb.(type) {
	case *redis.ClusterClient:
		client, err = c.MasterForKey(noTime, s.name(entryKey, key))
	case *redis.Ring:
		client, err = c.GetShardClientForKey(s.name(entryKey, key))
	}
	if client == nil || err != nil {
		return "redis"
	}
	return client.Options().Addr
}

// noTime is a context that has ended: it keeps a client from asking for what it does not know.
var noTime = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
