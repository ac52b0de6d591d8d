package main

import (
	"context"
	"time"

	"github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
)

// onceCache is go-redis/cache without its local cache, so that all contenders
// ask Redis.
type onceCache struct {
	rdb   *redis.Client
	cache *cache.Cache
	ttl   time.Duration
}

func openGoRedisCache(s Setup) *onceCache {
	rdb := newClient(s.Redis)
	return &onceCache{rdb: rdb, cache: cache.New(&cache.Options{Redis: rdb}), ttl: s.Tuning.TTL}
}

func (c *onceCache) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	var value []byte
	err := c.cache.Once(&cache.Item{
		Ctx: ctx, Key: key, Value: &value, TTL: c.ttl,
		Do: func(*cache.Item) (any, error) { return load(ctx) },
	})
	return value, "", err
}

func (c *onceCache) Invalidate(ctx context.Context, key string) error {
	return c.cache.Delete(ctx, key)
}

func (c *onceCache) Close() error { return c.rdb.Close() }
