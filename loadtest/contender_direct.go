package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct loads whenever GET misses: a cache without a guard.
type direct struct {
	rdb *redis.Client
	ttl time.Duration
}

func openDirect(s Setup) *direct {
	return &direct{rdb: newClient(s.Redis), ttl: s.Tuning.TTL}
}

func (d *direct) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	value, err := d.rdb.Get(ctx, key).Bytes()
	if err == nil {
		return value, "", nil
	}
	value, err = d.fill(ctx, key, load)
	return value, "", err
}

// fill loads the value of key and stores it if the store lets it.
func (d *direct) fill(ctx context.Context, key string, load Loader) ([]byte, error) {
	value, err := load(ctx)
	if err != nil {
		return nil, err
	}
	d.rdb.Set(ctx, key, value, d.ttl) // the value is good without it
	return value, nil
}

func (d *direct) Invalidate(ctx context.Context, key string) error {
	return d.rdb.Del(ctx, key).Err()
}

func (d *direct) Close() error { return d.rdb.Close() }
