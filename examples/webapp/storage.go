package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memcachestore"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/redisstore"
)

// opener makes the store of one replica, and what closes it.
type opener func(ctx context.Context) (store.Cache, func() error, error)

// storage returns the opener for a -store flag.
func storage(flag string) (opener, error) {
	scheme, rest, _ := strings.Cut(flag, "://")
	switch scheme {
	case "memory":
		shared := memstore.New(nil)
		return func(context.Context) (store.Cache, func() error, error) { return shared, nothing, nil }, nil
	case "redis", "rediss":
		return redisStorage(flag)
	case "memcached":
		return memcachedStorage(strings.Split(rest, ","))
	}
	return nil, fmt.Errorf("-store %q: want memory, redis://host:port/0 or memcached://host:port,host:port", flag)
}

// storageName is a -store flag as it may be shown: without a password.
func storageName(flag string) string {
	u, err := url.Parse(flag)
	if err != nil { // memcached://host:1,host:2 for one, which has none
		return flag
	}
	return u.Redacted()
}

func nothing() error { return nil }

// redisStorage gives each replica a client and a store of its own, as if it
// were a process of its own.
func redisStorage(flag string) (opener, error) {
	options, err := redis.ParseURL(flag)
	if err != nil {
		return nil, fmt.Errorf("-store %q: %w", storageName(flag), err)
	}
	return func(ctx context.Context) (store.Cache, func() error, error) {
		client := redis.NewClient(options)
		if err := client.Ping(ctx).Err(); err != nil {
			_ = client.Close()
			return nil, nil, fmt.Errorf("-store %q does not answer: %w", storageName(flag), err)
		}
		s, err := redisstore.New(client, nil)
		if err != nil {
			_ = client.Close()
			return nil, nil, err
		}
		return s, func() error { return errors.Join(s.Close(), client.Close()) }, nil
	}, nil
}

// memcachedStorage gives each replica a client of its own.
func memcachedStorage(servers []string) (opener, error) {
	return func(context.Context) (store.Cache, func() error, error) {
		client := memcache.New(servers...)
		client.Timeout = time.Second
		client.MaxIdleConns = 16
		if err := client.Ping(); err != nil {
			return nil, nil, fmt.Errorf("-store memcached://%s does not answer: %w", strings.Join(servers, ","), err)
		}
		s, err := memcachestore.New(client, nil)
		if err != nil {
			return nil, nil, err
		}
		return s, client.Close, nil
	}, nil
}
