package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/herdgate/herdgate/guard"
	"github.com/herdgate/herdgate/store/redisstore"
	"github.com/redis/go-redis/v9"
)

// Locker is a contender for exclusion.
type Locker interface {
	// Lock waits for its turn. unlock ends it.
	Lock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	Close() error
}

const bsmRedislock = "bsm/redislock"

// openLocker makes the locker that s names.
func openLocker(s Setup) (Locker, error) {
	rdb := newClient(s.Redis)
	switch s.Contender {
	case herdgate:
		return openGuard(rdb)
	case redsyncCheck:
		return &redsyncLocker{rdb, redsync.New(goredis.NewPool(rdb))}, nil
	case bsmRedislock:
		return &bsmLocker{rdb, redislock.New(rdb)}, nil
	default:
		return nil, fmt.Errorf("loadtest: no locker is called %q", s.Contender)
	}
}

// guardLocker is herdgate's guard with its defaults.
type guardLocker struct {
	rdb   *redis.Client
	store *redisstore.Store
	guard *guard.Guard
}

func openGuard(rdb *redis.Client) (Locker, error) {
	store, err := redisstore.New(rdb, nil)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(store, nil)
	if err != nil {
		return nil, err
	}
	return &guardLocker{rdb, store, g}, nil
}

func (l *guardLocker) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lease, err := l.guard.Acquire(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func (l *guardLocker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(l.guard.Close(ctx), l.store.Close(), l.rdb.Close())
}

// redsyncLocker is redsync with its defaults, which give up after 32 tries:
// then it is asked again.
type redsyncLocker struct {
	rdb   *redis.Client
	locks *redsync.Redsync
}

func (l *redsyncLocker) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	mutex := l.locks.NewMutex(name)
	for {
		err := mutex.LockContext(ctx)
		if err == nil {
			break
		}
		var taken *redsync.ErrTaken
		if ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		_, err := mutex.UnlockContext(ctx)
		return err
	}, nil
}

func (l *redsyncLocker) Close() error { return l.rdb.Close() }

// bsmLocker is bsm/redislock with the back-off of its documentation, 100 ms.
type bsmLocker struct {
	rdb   *redis.Client
	locks *redislock.Client
}

func (l *bsmLocker) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lock, err := l.locks.Obtain(ctx, name, 10*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

func (l *bsmLocker) Close() error { return l.rdb.Close() }
