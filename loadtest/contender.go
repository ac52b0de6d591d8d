package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Contender is a way to get a value that is expensive to load: what stands
// between the callers and the loader of a worker.
type Contender interface {
	// Get returns the value of key, loading it if need be. outcome is what
	// the contender says of the call, empty if it says nothing.
	Get(ctx context.Context, key string, load Loader) (value []byte, outcome string, err error)
	Invalidate(ctx context.Context, key string) error
	Close() error
}

// Loader computes a value.
type Loader func(ctx context.Context) ([]byte, error)

// The names of the contenders, as flags and reports show them.
const (
	noGuard      = "no guard"
	processOnly  = "process only"
	herdgate     = "herdgate"
	rueidisAside = "rueidisaside"
	goRedisCache = "go-redis/cache"
	redsyncCheck = "redsync"
)

// caches are the contenders of most scenarios, in the order of the tables.
var caches = []string{herdgate, noGuard, processOnly, rueidisAside, goRedisCache, redsyncCheck}

// defaultTTL is longer than any scenario takes.
const defaultTTL = time.Minute

// open makes the contender that s names. What herdgate says of its store goes
// to h.
func open(s Setup, h *health) (Contender, error) {
	if s.Tuning.TTL == 0 {
		s.Tuning.TTL = defaultTTL
	}
	switch s.Contender {
	case noGuard, plainGet:
		return openDirect(s), nil
	case processOnly:
		return openProcess(s), nil
	case herdgate:
		return openHerdgate(s, h)
	case rueidisAside:
		return openRueidisAside(s)
	case goRedisCache:
		return openGoRedisCache(s), nil
	case redsyncCheck:
		return openRedsync(s), nil
	case otterAlone:
		return openOtter(), nil
	case singleFlight:
		return new(flown), nil
	default:
		return nil, fmt.Errorf("loadtest: no contender is called %q", s.Contender)
	}
}

// newClient returns the go-redis client that all contenders on go-redis use,
// with the library's defaults.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}
