package main

import (
	"context"

	"golang.org/x/sync/singleflight"
)

// process coalesces the loads of one process with x/sync/singleflight, and
// leaves those of other processes alone.
type process struct {
	*direct
	flights singleflight.Group
}

func openProcess(s Setup) *process { return &process{direct: openDirect(s)} }

func (p *process) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	if value, err := p.rdb.Get(ctx, key).Bytes(); err == nil {
		return value, "", nil
	}
	value, err, _ := p.flights.Do(key, func() (any, error) {
		return p.fill(ctx, key, load)
	})
	if err != nil {
		return nil, "", err
	}
	return value.([]byte), "", nil
}
