package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// announced returns what s hears of, from now on.
func announced(t *testing.T, s *redisstore.Store) <-chan store.Change {
	t.Helper()
	heard := make(chan store.Change, 1000)
	stop, err := s.Announce(context.Background(), func(c store.Change) { heard <- c })
	ok(t, err)
	t.Cleanup(stop)
	return heard
}

// hear waits until want was announced. Others may be announced before.
func hear(t *testing.T, heard <-chan store.Change, want store.Change) {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case c := <-heard:
			if c == want {
				return
			}
		case <-timeout:
			t.Fatalf("%+v was not announced", want)
		}
	}
}

// TestLaw3ChangesAreAnnounced: every process hears which entries ended out of
// turn, whatever the key.
func TestLaw3ChangesAreAnnounced(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	s, other := newStore(t, single(t, server.Addr), nil), newStore(t, single(t, server.Addr), nil)
	heard := announced(t, s)
	for _, key := range []string{"key", "", "{}\x00\xff"} {
		for name, end := range map[string]func() error{
			"Delete":    func() error { return other.Delete(ctx, key) },
			"DeleteAll": func() error { return errors.Join(other.DeleteAll(ctx, []string{"before", key})...) },
			"Put":       func() error { return other.Put(ctx, key, store.NewToken(), nil, long) },
			"Expire":    func() error { return other.Expire(ctx, key) },
			"own":       func() error { return s.Delete(ctx, key) },
		} {
			t.Log(name)
			ok(t, end())
			hear(t, heard, store.Change{Key: key})
		}
	}
}

// TestLaw3MissedAnnouncements: after a gap everything is in doubt, and
// announcements go on.
func TestLaw3MissedAnnouncements(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	proxy := servertest.NewProxy(t, server.Addr)
	s, other := quick(t, proxy.Addr), newStore(t, single(t, server.Addr), nil)
	heard := announced(t, s)
	ok(t, other.Delete(ctx, "key"))
	hear(t, heard, store.Change{Key: "key"})
	for _, fault := range []func(){proxy.Cut, func() {
		proxy.DropReplies()
		refused(t, s)
		proxy.Pass()
	}} {
		for len(heard) > 0 {
			<-heard
		}
		fault()
		hear(t, heard, store.Change{All: true})
		eventually(t, "announcements go on", func() bool {
			ok(t, other.Delete(ctx, "key"))
			select {
			case c := <-heard:
				return !c.All
			default:
				return false
			}
		})
	}
}

// TestLaw13NoAnnouncementsOnARing: what cannot be heard is refused.
func TestLaw13NoAnnouncementsOnARing(t *testing.T) {
	ring := closing(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": servertest.Redis(t).Addr}}))
	_, err := newStore(t, ring, nil).Announce(context.Background(), func(store.Change) {})
	wantErr(t, err, errors.ErrUnsupported)
}
