package servertest

import (
	"context"
	"strconv"
)

// Redis starts a Redis server for the length of a test. It keeps nothing on
// disk unless args (options of redis-server, "--maxmemory", "10mb") say so.
func Redis(tb TB, args ...string) *Process {
	tb.Helper()
	p, err := StartRedis(context.Background(), tb.TempDir(), args...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(p.Kill)
	return p
}

// StartRedis is Redis for programs. The server runs in dir until Kill, or
// until the program ends.
func StartRedis(ctx context.Context, dir string, args ...string) (*Process, error) {
	return startOnFreePort(ctx, func(port int) (*Process, error) {
		all := append([]string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no",
		}, args...)
		return start(ctx, "redis-server", dir, loopback(port), all, redisAnswers)
	})
}

func redisAnswers(ctx context.Context, addr string) error {
	return answers(ctx, addr, "PING", "+PONG") // not -LOADING, for one
}
