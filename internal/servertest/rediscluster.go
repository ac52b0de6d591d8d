package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of every Redis Cluster.
const slots = 16384

// Cluster is a Redis Cluster of masters without replicas.
type Cluster struct {
	Nodes []*Process
}

// RedisCluster starts a cluster of three masters for the length of a test.
// args are as in [Redis].
func RedisCluster(tb TB, args ...string) *Cluster {
	tb.Helper()
	c, err := StartRedisCluster(context.Background(), tb.TempDir(), args...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(c.Kill)
	return c
}

// StartRedisCluster is RedisCluster for programs. It writes into dir.
func StartRedisCluster(ctx context.Context, dir string, args ...string) (*Cluster, error) {
	c := new(Cluster)
	err := c.start(ctx, dir, args)
	if err == nil {
		err = c.join(ctx)
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

// Addrs returns the addresses of all nodes, for redis.ClusterOptions.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Kill kills every node.
func (c *Cluster) Kill() {
	for _, n := range c.Nodes {
		n.Kill()
	}
}

// start starts three nodes that do not know each other yet.
func (c *Cluster) start(ctx context.Context, dir string, args []string) error {
	for i := range 3 {
		own := filepath.Join(dir, "node"+strconv.Itoa(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return fmt.Errorf("servertest: %w", err)
		}
		bus, err := freePort()
		if err != nil {
			return err
		}
		n, err := StartRedis(ctx, own, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf",
		}, args...)...)
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, n)
	}
	return nil
}

// join gives each node its share of the slots, introduces the nodes to each
// other and waits until all of them serve.
func (c *Cluster) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for i, n := range c.Nodes {
		first, last := i*slots/len(c.Nodes), (i+1)*slots/len(c.Nodes)-1
		err := ask(n.Addr, func(r *redis.Client) error {
			return errors.Join(
				r.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
				r.ClusterAddSlotsRange(ctx, first, last).Err(),
				c.meet(ctx, r))
		})
		if err != nil {
			return fmt.Errorf("servertest: building the cluster: %w", err)
		}
	}
	for _, n := range c.Nodes {
		if err := poll(ctx, func() error { return c.serves(ctx, n) }); err != nil {
			return fmt.Errorf("servertest: the cluster does not come up: %w", err)
		}
	}
	return nil
}

// meet introduces r's node to the first one. Gossip does the rest.
func (c *Cluster) meet(ctx context.Context, r *redis.Client) error {
	first := c.Nodes[0].Addr
	host, port, err := net.SplitHostPort(first)
	if err != nil || r.Options().Addr == first {
		return err
	}
	return ask(first, func(f *redis.Client) error {
		bus, err := f.ConfigGet(ctx, "cluster-port").Result()
		if err != nil {
			return err
		}
		return r.Do(ctx, "cluster", "meet", host, port, bus["cluster-port"]).Err()
	})
}

// serves returns nil once n knows all nodes and all slots.
func (c *Cluster) serves(ctx context.Context, n *Process) error {
	return ask(n.Addr, func(r *redis.Client) error {
		info, err := r.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_size:" + strconv.Itoa(len(c.Nodes))} {
			if !strings.Contains(info, want+"\r\n") {
				return fmt.Errorf("%s is not yet %s", n.Addr, want)
			}
		}
		return nil
	})
}

// ask runs fn with a client of the server at addr that tries everything once.
func ask(addr string, fn func(*redis.Client) error) error {
	r := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	defer r.Close()
	return fn(r)
}

// poll repeats fn until it returns nil, or returns its last error when ctx ends.
func poll(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
