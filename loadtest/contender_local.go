package main

import (
	"context"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
)

const (
	otterAlone   = "otter"
	singleFlight = "singleflight"
)

// ottered is an otter cache in the process, and nothing else.
type ottered struct {
	cache *otter.Cache[string, []byte]
}

func openOtter() *ottered {
	return &ottered{otter.Must(&otter.Options[string, []byte]{MaximumSize: 10_000})}
}

func (o *ottered) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	value, err := o.cache.Get(ctx, key, otterLoader(load))
	return value, "", err
}

func (o *ottered) hit(ctx context.Context, key string, load Loader) error {
	_, err := o.cache.Get(ctx, key, otterLoader(load))
	return err
}

func otterLoader(load Loader) otter.Loader[string, []byte] {
	return otter.LoaderFunc[string, []byte](func(ctx context.Context, _ string) ([]byte, error) { return load(ctx) })
}

func (o *ottered) Invalidate(_ context.Context, key string) error {
	o.cache.Invalidate(key)
	return nil
}

func (o *ottered) Close() error {
	o.cache.StopAllGoroutines()
	return nil
}

// flown is x/sync/singleflight, and no cache.
type flown struct {
	flights singleflight.Group
}

func (f *flown) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	value, err, _ := f.flights.Do(key, func() (any, error) { return load(ctx) })
	if err != nil {
		return nil, "", err
	}
	return value.([]byte), "", nil
}

func (f *flown) Invalidate(context.Context, string) error { return nil }
func (f *flown) Close() error                             { return nil }
