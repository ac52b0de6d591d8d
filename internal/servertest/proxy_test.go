package servertest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// through returns a client of the proxied server that tries everything once
// and gives up soon.
func through(t *testing.T, p *Proxy) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: p.Addr, MaxRetries: -1, DialerRetries: 1,
		ReadTimeout: 300 * time.Millisecond, WriteTimeout: 300 * time.Millisecond,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestProxyLosesReplies(t *testing.T) {
	ctx := t.Context()
	server := Redis(t)
	p := NewProxy(t, server.Addr)
	c := through(t, p)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = direct.Close() })

	for _, lose := range []func(){p.LoseReply, p.DropReplies} {
		if err := c.Set(ctx, "k", "before", 0).Err(); err != nil {
			t.Fatal(err)
		}
		lose()
		if err := c.Set(ctx, "k", "after", 0).Err(); err == nil {
			t.Fatal("the reply came through")
		}
		if got := direct.Get(ctx, "k").Val(); got != "after" {
			t.Fatalf("the request was not delivered: %q", got)
		}
		p.Pass()
		p.Cut()
	}
}

func TestProxyHalfOpen(t *testing.T) {
	ctx := t.Context()
	p := NewProxy(t, Redis(t).Addr)
	c := through(t, p)
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p.DropAll()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Fatal("a half-open connection answered")
	}
	p.Pass()
	if err := c.Ping(context.WithoutCancel(ctx)).Err(); err != nil {
		t.Fatalf("a new connection does not work: %v", err)
	}
}
