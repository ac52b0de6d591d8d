package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// oddities are strings that somebody could write into a key.
func oddities() []string {
	return []string{
		"", "x", strings.Repeat("\x00", 16), strings.Repeat("\x00", 17), strings.Repeat("t", 16) + "\x02value",
		strings.Repeat("t", 16) + "not sixteen digi", strings.Repeat("t", 32), strings.Repeat("t", 16) + "0x00000000000001",
		strings.Repeat("t", 16) + "             inf", strings.Repeat("\x00", 16) + strings.Repeat("9", 16),
		strings.Repeat("\x00", 16) + strings.Repeat("9", 15) + "x" + strings.Repeat("9", 16) + "data",
	}
}

// TestDamagedEntry: what is no entry is a miss, and is overwritten.
func TestDamagedEntry(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, nil)
	for _, damage := range oddities()[:5] {
		ok(t, s.Delete(ctx, "key"))
		ok(t, rdb.Set(ctx, redisstore.Names(s, "key")[0], damage, 0).Err())
		_, err := s.Get(ctx, "key")
		wantErr(t, err, store.ErrMiss)
		ok(t, s.Expire(ctx, "key"))
		ok(t, s.Fill(ctx, claimed(t, s, "key"), []byte("value"), long))
		_, err = s.Get(ctx, "key")
		ok(t, err)
	}
}

// TestDamagedLease: what is no lease, and a lease that would never end, holds
// nobody up.
func TestDamagedLease(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, nil)
	forEver := strings.Repeat("t", 16) + strings.Repeat("1", 16)
	coolForEver := strings.Repeat("\x00", 16) + strings.Repeat("1", 16) + strings.Repeat("9", 16) + "boom"
	for _, damage := range append(oddities(), forEver, coolForEver) {
		for _, ttl := range []time.Duration{0, time.Hour} {
			if ttl != 0 && (damage == forEver || damage == coolForEver) {
				continue // that is a lease, or a failure
			}
			l := redisstore.Names(s, "key")[1]
			ok(t, rdb.Set(ctx, l, damage, ttl).Err())
			ok(t, s.Yield(ctx, claimed(t, s, "key"), store.Failure{}))
			ok(t, rdb.Set(ctx, l, damage, ttl).Err())
			had, err := s.Break(ctx, "key")
			ok(t, err)
			if had != (store.Holder{}) {
				t.Errorf("%q was broken as %+v", damage, had)
			}
			lease, err := s.Acquire(ctx, request("key"))
			if err != nil {
				t.Fatalf("%q keeps the lease: %v", damage, err)
			}
			ok(t, s.Release(ctx, lease))
		}
	}
}

// TestDamagedQueue: what is no place is passed over.
func TestDamagedQueue(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, nil)
	names := redisstore.Names(s, "job")
	l, err := s.Acquire(ctx, request("job"))
	ok(t, err)
	for _, damage := range []string{"", "x", "\x93\x01\x02\x03", "\x95\xa1x\xa1x\xa1x\xa1x\xa1x"} {
		ok(t, rdb.RPush(ctx, names[3], "token"+damage).Err())
		ok(t, rdb.HSet(ctx, names[4], "token"+damage, damage).Err())
	}
	ok(t, s.Release(ctx, l))
	_, err = s.Acquire(ctx, request("job"))
	ok(t, err)
}

// TestForeignType: a key of another type is somebody else's: an error that
// says so, and Delete cleans up.
func TestForeignType(t *testing.T) {
	ctx := context.Background()
	rdb := single(t, servertest.Redis(t).Addr)
	s := newStore(t, rdb, nil)
	for i := range 2 { // v, l
		name := redisstore.Names(s, "key")[i]
		ok(t, rdb.RPush(ctx, name, "x").Err())
		_, err := s.Claim(ctx, request("key"))
		says(t, err, "somebody else has written")
		if i == 0 {
			_, err = s.Get(ctx, "key")
			says(t, err, "somebody else has written")
		}
		ok(t, s.Delete(ctx, "key"))
		claimed(t, s, "key")
		ok(t, s.Delete(ctx, "key"))
	}
	ok(t, rdb.RPush(ctx, redisstore.Names(s, "key")[2], "x").Err()) // w
	ok(t, s.Fill(ctx, claimed(t, s, "key"), []byte("value"), long))
}

func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("got error %v, want one that says %q", err, text)
	}
}

// TestServerStates: a server that refuses says why, and nobody hangs.
func TestServerStates(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server := servertest.Redis(t)
	admin := single(t, server.Addr)
	try := func(rdb *redis.Client, text string) {
		t.Helper()
		s := newStore(t, rdb, nil)
		_, err := s.Claim(ctx, request("key"))
		says(t, err, text)
		_, err = s.Acquire(ctx, request("key"))
		says(t, err, text)
		says(t, s.Delete(ctx, "key"), text)
		says(t, errors.Join(s.DeleteAll(ctx, []string{"key"})...), text)
	}
	ok(t, admin.Do(ctx, "acl", "setuser", "reader", "on", ">secret", "~*", "&*", "+@all", "-@scripting", "-subscribe").Err())
	reader := closing(t, redis.NewClient(&redis.Options{Addr: server.Addr, Username: "reader", Password: "secret"}))
	try(reader, "the Redis user may not do this")
	_, _, err := newStore(t, reader, nil).Watch(ctx, "key")
	says(t, err, "the Redis user may not do this")

	replica := servertest.Redis(t, "--replicaof", "127.0.0.1", "1")
	try(single(t, replica.Addr), "read-only replica")

	ok(t, admin.ConfigSet(ctx, "maxmemory", "1").Err())
	_, err = newStore(t, admin, nil).Claim(ctx, request("key"))
	says(t, err, "out of memory")
	ok(t, ctx.Err())
}

// TestServerCannotPersist: MISCONF is named.
func TestServerCannotPersist(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "gone")
	ok(t, os.Mkdir(dir, 0o700))
	rdb := single(t, servertest.Redis(t, "--save", "3600 1", "--dir", dir).Addr)
	ok(t, os.Remove(dir))
	ok(t, rdb.BgSave(ctx).Err())
	s := newStore(t, rdb, nil)
	eventually(t, "writes are refused", func() bool {
		err := s.Put(ctx, "key", store.NewToken(), nil, long)
		return err != nil && strings.Contains(err.Error(), "cannot persist")
	})
}

// TestServerLoads: a server that is still loading says so, and is usable after
// that.
func TestServerLoads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servertest.Redis(t, "--dir", t.TempDir(), "--rdbcompression", "no", "--key-load-delay", "50000",
		"--loading-process-events-interval-bytes", "1024") // it loads slowly, and answers meanwhile
	rdb := single(t, server.Addr)
	for i := range 40 {
		ok(t, rdb.Set(ctx, fmt.Sprint("k", i), strings.Repeat("x", 1024), 0).Err())
	}
	ok(t, rdb.Save(ctx).Err())
	server.Kill()
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart(ctx) }()
	s := newStore(t, rdb, nil)
	eventually(t, "the server is loading", func() bool {
		_, err := s.Claim(ctx, request("key"))
		return err != nil && strings.Contains(err.Error(), "still loading")
	})
	ok(t, <-restarted)
	claimed(t, s, "key")
}

// TestMutePublisher: a user who may not publish can do everything else, and
// stops nothing half-way.
func TestMutePublisher(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	admin := single(t, server.Addr)
	ok(t, admin.Do(ctx, "acl", "setuser", "mute", "on", ">secret", "~*", "resetchannels", "+@all").Err())
	mute := newStore(t, closing(t, redis.NewClient(&redis.Options{Addr: server.Addr, Username: "mute", Password: "secret"})), nil)
	waiter := newStore(t, admin, nil)
	watch(t, waiter, "key")
	l := claimed(t, mute, "key")
	_, err := waiter.Claim(ctx, request("key"))
	ok(t, err)
	ok(t, mute.Fill(ctx, l, []byte("value"), long))
	_, err = waiter.Get(ctx, "key")
	ok(t, err)
}
