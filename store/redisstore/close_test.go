package redisstore_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store/redisstore"
)

// TestCloseLeavesNothing: no goroutine and no connection of ours survives
// Close, and the client goes on working.
func TestCloseLeavesNothing(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	rdb := single(t, server.Addr)
	ok(t, rdb.Ping(ctx).Err())
	before := runtime.NumGoroutine()
	for range 10 {
		s, err := redisstore.New(rdb, nil)
		ok(t, err)
		redisstore.SetPulse(s, time.Millisecond, time.Second)
		watch(t, s, "key")
		ok(t, s.Close())
		ok(t, s.Close())
		_, _, err = s.Watch(ctx, "key")
		wantErr(t, err, redisstore.ErrClosed)
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "no inbox is left", func() bool {
		channels, err := rdb.PubSubChannels(ctx, "*").Result()
		return err == nil && len(channels) == 0
	})
}

// TestCloseWhileServerIsSilent: Close does not wait for a server for ever.
func TestCloseWhileServerIsSilent(t *testing.T) {
	server := servertest.Redis(t)
	s := quick(t, server.Addr)
	watch(t, s, "key")
	server.Pause()
	defer server.Continue()
	refused(t, s) // a heartbeat is under way
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		ok(t, err)
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
}
