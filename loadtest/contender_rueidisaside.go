package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"
)

// aside is rueidisaside with its defaults.
type aside struct {
	client rueidisaside.CacheAsideClient
	ttl    time.Duration
}

func openRueidisAside(s Setup) (*aside, error) {
	client, err := rueidisaside.NewClient(rueidisaside.ClientOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{s.Redis}},
	})
	if err != nil {
		return nil, err
	}
	return &aside{client, s.Tuning.TTL}, nil
}

func (a *aside) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	value, err := a.client.Get(ctx, a.ttl, key, func(ctx context.Context, _ string) (string, error) {
		value, err := load(ctx)
		return string(value), err
	})
	return []byte(value), "", err
}

func (a *aside) Invalidate(ctx context.Context, key string) error { return a.client.Del(ctx, key) }

func (a *aside) Close() error {
	a.client.Close()
	return nil
}
