package redisstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkClient refuses clients that may answer a read with what was deleted
// before.
func checkClient(rdb redis.UniversalClient) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("redisstore: the client is nil")
	}
	var option string
	switch c := rdb.(type) {
	case *redis.Client:
		if o := c.Options(); o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
			option = "Options.ClientSideCache"
		}
	case *redis.ClusterClient:
		switch o := c.Options(); {
		case o.RouteByLatency:
			option = "ClusterOptions.RouteByLatency"
		case o.RouteRandomly:
			option = "ClusterOptions.RouteRandomly"
		case o.ReadOnly:
			option = "ClusterOptions.ReadOnly"
		}
	}
	if option != "" {
		return fmt.Errorf("redisstore: the client's %s is set: a read could return what was invalidated before", option)
	}
	return nil
}

// fenceTimeout is how long New waits for the server that shall give fences.
const fenceTimeout = time.Second

// checkFences returns an error that wraps errors.ErrUnsupported if the server
// could forget a fence or a lease that it acknowledged. durable says that it
// also keeps everything over a crash of its machine.
func checkFences(rdb redis.UniversalClient) (durable bool, err error) {
	c, ok := rdb.(*redis.Client)
	if !ok {
		return false, noFences("needs a *redis.Client of one server, not a %T", rdb)
	}
	if c.Options().Addr == "FailoverClient" {
		return false, noFences("cannot hold over a failover by Sentinel")
	}
	type result struct {
		durable bool
		err     error
	}
	ctx, cancel := context.WithTimeout(context.Background(), fenceTimeout)
	defer cancel()
	done := make(chan result, 1)
	go func() { // go-redis does not leave when ctx ends
		durable, err := askFences(ctx, c.WithTimeout(fenceTimeout))
		done <- result{durable, err}
	}()
	select {
	case r := <-done:
		return r.durable, r.err
	case <-ctx.Done():
		return false, fmt.Errorf("redisstore: Options.Fences: the server does not say whether it can: %w", ctx.Err())
	}
}

func askFences(ctx context.Context, c *redis.Client) (durable bool, err error) {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return false, explain("Options.Fences: INFO", err)
	}
	info := parseInfo(text)
	switch {
	case info["role"] != "master":
		return false, noFences("needs a master, not a %s", info["role"])
	case info["connected_slaves"] != "0":
		return false, noFences("cannot hold: %s replicas could take the server's place", info["connected_slaves"])
	case info["cluster_enabled"] != "0":
		return false, noFences("cannot hold on a node of a cluster")
	case info["maxmemory_policy"] != "noeviction":
		return false, noFences("cannot hold with maxmemory-policy %s; it must be noeviction", info["maxmemory_policy"])
	}
	// Hosted servers may refuse CONFIG: then nothing is known, and promised.
	sync, err := c.ConfigGet(ctx, "appendfsync").Result()
	return err == nil && info["aof_enabled"] == "1" && sync["appendfsync"] == "always", nil
}

func noFences(format string, args ...any) error {
	return fmt.Errorf("redisstore: Options.Fences %s: %w", fmt.Sprintf(format, args...), errors.ErrUnsupported)
}

// parseInfo reads the reply of INFO: lines of name:value.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info
}
