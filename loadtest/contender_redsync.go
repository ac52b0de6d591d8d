package main

import (
	"context"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"golang.org/x/sync/singleflight"
)

// redsynced coalesces the loads of one process, and those of many by a redsync
// mutex with its defaults: lock, look again, load, store, unlock.
type redsynced struct {
	*direct
	flights singleflight.Group
	locks   *redsync.Redsync
}

func openRedsync(s Setup) *redsynced {
	d := openDirect(s)
	return &redsynced{direct: d, locks: redsync.New(goredis.NewPool(d.rdb))}
}

func (r *redsynced) Get(ctx context.Context, key string, load Loader) ([]byte, string, error) {
	if value, err := r.rdb.Get(ctx, key).Bytes(); err == nil {
		return value, "", nil
	}
	value, err, _ := r.flights.Do(key, func() (any, error) {
		return r.fillLocked(ctx, key, load)
	})
	if err != nil {
		return nil, "", err
	}
	return value.([]byte), "", nil
}

func (r *redsynced) fillLocked(ctx context.Context, key string, load Loader) ([]byte, error) {
	mutex := r.locks.NewMutex("lock:" + key)
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	defer func() { _, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) }()
	if value, err := r.rdb.Get(ctx, key).Bytes(); err == nil {
		return value, nil
	}
	return r.fill(ctx, key, load)
}
