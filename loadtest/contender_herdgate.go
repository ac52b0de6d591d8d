package main

import (
	"context"
	"errors"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store/redisstore"
	"github.com/redis/go-redis/v9"
)

// guarded is herdgate over Redis.
type guarded struct {
	rdb   *redis.Client
	store *redisstore.Store
	cache *cachefill.Cache[[]byte]
}

func openHerdgate(s Setup, h *health) (*guarded, error) {
	rdb := newClient(s.Redis)
	store, err := redisstore.New(rdb, nil)
	if err != nil {
		return nil, err
	}
	options := &cachefill.Options[[]byte]{
		Codec:       cachefill.Raw(),
		TTL:         s.Tuning.TTL,
		Stale:       s.Tuning.Stale,
		LoadTimeout: s.Tuning.LoadTimeout,
		NearTTL:     s.Tuning.NearTTL,
		OnEvent:     func(e cachefill.Event) { tellHealth(h, e) },
	}
	if s.Tuning.NearTTL > 0 {
		options.Near = 10_000
	}
	c, err := cachefill.New(store, options)
	if err != nil {
		return nil, err
	}
	return &guarded{rdb, store, c}, nil
}

func tellHealth(h *health, e cachefill.Event) {
	switch e.Kind {
	case cachefill.StoreFailed:
		h.failed(e.Key)
	case cachefill.StoreBreaker:
		h.breaker(e.Err != nil)
	}
}

func (g *guarded) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	r, err := g.cache.Fetch(ctx, key, cachefill.Loader[[]byte](load))
	return r.Value, r.Outcome.String(), err
}

func (g *guarded) hit(ctx context.Context, key string, load Loader) error {
	_, err := g.cache.Get(ctx, key, cachefill.Loader[[]byte](load))
	return err
}

func (g *guarded) Invalidate(ctx context.Context, key string) error {
	return g.cache.Invalidate(ctx, key)
}

func (g *guarded) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(g.cache.Close(ctx), g.store.Close(), g.rdb.Close())
}

// closeTimeout is how long a contender may take to end.
const closeTimeout = 5 * time.Second
