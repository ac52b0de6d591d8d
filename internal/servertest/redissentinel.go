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

	"github.com/redis/go-redis/v9"
)

// Sentinel is a Redis master with one replica and a Sentinel that promotes the
// replica when the master has not answered for half a second.
type Sentinel struct {
	// Name is the master's name at the Sentinel, for redis.FailoverOptions.
	Name string

	Master, Replica *Process // as they were started
	Sentinel        *Process
}

// RedisSentinel starts master, replica and Sentinel for the length of a test.
// args, as in [Redis], are those of master and replica.
func RedisSentinel(tb TB, args ...string) *Sentinel {
	tb.Helper()
	s, err := StartRedisSentinel(context.Background(), tb.TempDir(), args...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// StartRedisSentinel is RedisSentinel for programs. It writes into dir.
func StartRedisSentinel(ctx context.Context, dir string, args ...string) (*Sentinel, error) {
	s := &Sentinel{Name: "main"}
	err := s.start(ctx, dir, args)
	if err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// Kill kills all three processes.
func (s *Sentinel) Kill() {
	for _, p := range []*Process{s.Sentinel, s.Replica, s.Master} {
		if p != nil {
			p.Kill()
		}
	}
}

func (s *Sentinel) start(ctx context.Context, dir string, args []string) (err error) {
	if s.Master, err = StartRedis(ctx, dir, args...); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Master.Addr)
	if err != nil {
		return err
	}
	follow := []string{"--replicaof", host, port, "--repl-diskless-sync-delay", "0"}
	if s.Replica, err = StartRedis(ctx, dir, append(follow, args...)...); err != nil {
		return err
	}
	if s.Sentinel, err = s.startSentinel(ctx, dir, host, port); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := poll(ctx, func() error { return s.ready(ctx) }); err != nil {
		return fmt.Errorf("servertest: the Sentinel does not come up: %w", err)
	}
	return nil
}

// startSentinel starts the Sentinel. It wants a file of its own to write its
// state into.
func (s *Sentinel) startSentinel(ctx context.Context, dir, host, port string) (*Process, error) {
	return startOnFreePort(ctx, func(own int) (*Process, error) {
		conf := []string{
			"port " + strconv.Itoa(own),
			"bind 127.0.0.1",
			"sentinel monitor " + s.Name + " " + host + " " + port + " 1",
			"sentinel down-after-milliseconds " + s.Name + " 500",
			"sentinel failover-timeout " + s.Name + " 5000",
		}
		path := filepath.Join(dir, "sentinel"+strconv.Itoa(own)+".conf")
		if err := os.WriteFile(path, []byte(strings.Join(conf, "\n")), 0o600); err != nil {
			return nil, fmt.Errorf("servertest: %w", err)
		}
		return start(ctx, "redis-sentinel", dir, loopback(own), []string{path}, redisAnswers)
	})
}

// ready returns nil once the replica follows and the Sentinel knows it: before,
// a dead master has no successor.
func (s *Sentinel) ready(ctx context.Context) error {
	err := ask(s.Replica.Addr, func(r *redis.Client) error {
		info, err := r.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = errors.New("the replica is not in sync")
		}
		return err
	})
	if err != nil {
		return err
	}
	c := redis.NewSentinelClient(&redis.Options{Addr: s.Sentinel.Addr})
	defer c.Close()
	replicas, err := c.Replicas(ctx, s.Name).Result()
	if err == nil && (len(replicas) == 0 || replicas[0]["master-link-status"] != "ok") {
		err = errors.New("the Sentinel does not know the replica")
	}
	return err
}
