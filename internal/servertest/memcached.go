package servertest

import (
	"context"
	"os"
	"strconv"
)

// Memcached starts a memcached server for the length of a test. args are
// options of memcached ("-m", "1").
func Memcached(tb TB, args ...string) *Process {
	tb.Helper()
	p, err := StartMemcached(context.Background(), args...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(p.Kill)
	return p
}

// StartMemcached is Memcached for programs. The server runs until Kill, or
// until the program ends.
func StartMemcached(ctx context.Context, args ...string) (*Process, error) {
	return startOnFreePort(ctx, func(port int) (*Process, error) {
		all := []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "0"}
		if os.Geteuid() == 0 {
			all = append(all, "-u", "root") // it refuses to guess another user
		}
		return start(ctx, "memcached", os.TempDir(), loopback(port), append(all, args...), memcachedAnswers)
	})
}

func memcachedAnswers(ctx context.Context, addr string) error {
	return answers(ctx, addr, "version", "VERSION ")
}
