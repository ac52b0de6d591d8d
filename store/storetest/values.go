package storetest

import (
	"bytes"
	"time"

	"github.com/herdgate/herdgate/store"
)

// valueCases are about entries: their bytes, their life, and the ways to
// store and end them without a lease.
var valueCases = []testCase{
	{
		name:    "Law12AnyKeyAndValue",
		promise: "a key and a value are any bytes, also none; no key stands for another",
		run: func(t *run) {
			emptyKey.Lock()
			defer emptyKey.Unlock()
			c, other := t.caches()
			keys := oddKeys()
			t.ok(c.Delete(t.ctx, ""))
			for _, key := range keys {
				t.misses(other, key)
				t.load(c, key, "value of "+key)
			}
			for _, key := range keys {
				e, err := other.Get(t.ctx, key)
				t.ok(err)
				if string(e.Value) != "value of "+key {
					t.Errorf("under key %.40q is %.40q", key, e.Value)
				}
			}
			for i, err := range store.DeleteAll(t.ctx, other, keys) {
				t.ok(err)
				t.misses(c, keys[i])
			}
		},
	},
	{
		name:    "Law12AnyValue",
		promise: "a value is any bytes, also none, and comes back as it went in",
		run: func(t *run) {
			c, other := t.caches()
			for _, value := range oddValues() {
				key := t.key()
				l := t.granted(c, key, store.Token{})
				t.ok(c.Fill(t.ctx, l, value, long))
				t.has(other, key, l.Token, string(value))
				t.is(t.claim(other, request(key, long), store.Found).Entry, l.Token, string(value))
				version := store.NewToken()
				t.ok(store.Put(t.ctx, c, key, version, value, long))
				t.has(other, key, version, string(value))
			}
		},
	},
	{
		name:    "EntriesExpire",
		promise: "an entry lives for the time to live it was filled with",
		run: func(t *run) {
			c, other := t.caches()
			l := t.granted(c, t.key(), store.Token{})
			lasting := t.load(c, t.key(), "lasting")
			before := time.Now()
			t.ok(c.Fill(t.ctx, l, []byte("value"), t.short()))
			t.eventually("the entry expires", func() bool {
				_, err := other.Get(t.ctx, l.Key)
				if err == nil {
					return false
				}
				t.wantErr(err, store.ErrMiss)
				if lived := time.Since(before); lived < t.short()-t.b.Facts.Early-pause {
					t.Errorf("a time to live of %v was over after %v", t.short(), lived)
				}
				return true
			})
			t.granted(c, l.Key, store.Token{})
			t.has(other, lasting.Key, lasting.Token, "lasting")
		},
	},
	{
		name:    "PutStores",
		promise: "Put stores value as the entry with the given version",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			for _, value := range []string{"first", "second"} {
				version := store.NewToken()
				t.ok(store.Put(t.ctx, c, key, version, []byte(value), long))
				t.has(other, key, version, value)
				t.is(t.claim(other, request(key, long), store.Found).Entry, version, value)
			}
			if store.Put(t.ctx, c, t.key(), store.Token{}, []byte("value"), long) == nil {
				t.Error("Put took the zero version")
			}
		},
	},
	{
		name:    "Law2PutEndsTheLease",
		promise: "Put ends any lease on the key: a load that began before does not replace what was put",
		run: func(t *run) {
			c, other := t.caches()
			key, version := t.key(), store.NewToken()
			l := t.granted(c, key, store.Token{})
			t.ok(store.Put(t.ctx, other, key, version, []byte("put"), long))
			t.fillLost(c, l)
			t.has(c, key, version, "put")
			t.granted(c, key, version)
		},
	},
	{
		name:    "PutForgetsTheFailure",
		promise: "after Put a failure of before is forgotten",
		run: func(t *run) {
			c, other := t.caches()
			key, version := t.key(), store.NewToken()
			t.fail(c, key, store.Token{}, store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long})
			t.ok(store.Put(t.ctx, other, key, version, []byte("put"), long))
			req := request(key, long)
			req.Seen = version
			if a := t.claim(c, req, store.Granted); len(a.Failure.Data) != 0 {
				t.Errorf("the grantee was told %+v", a.Failure)
			}
		},
	},
	{
		name:    "ExpireMarksStale",
		promise: "Expire sets Stale on the entry, for Get and for Claim, until it is filled anew; a key without an entry is no error",
		needs:   expires,
		run: func(t *run) {
			c, other := t.caches()
			e := as[store.Expirer](t, c)
			key := t.key()
			t.ok(e.Expire(t.ctx, key))
			t.misses(other, key)
			old := t.load(c, key, "old")
			t.ok(e.Expire(t.ctx, key))
			t.ok(e.Expire(t.ctx, key))
			if !t.has(other, key, old.Token, "old").Stale || !t.claim(other, request(key, long), store.Found).Entry.Stale {
				t.Error("the entry is not stale")
			}
			l := t.granted(other, key, old.Token)
			t.ok(other.Fill(t.ctx, l, []byte("new"), long))
			if t.has(c, key, l.Token, "new").Stale {
				t.Error("a new entry is stale")
			}
		},
	},
	{
		name:    "Law2ExpireEndsTheLease",
		promise: "Expire ends any lease on the key: a load that began before does not make the entry fresh again",
		needs:   expires,
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			l := t.granted(c, key, old.Token)
			t.ok(as[store.Expirer](t, other).Expire(t.ctx, key))
			t.fillLost(c, l)
			_ = c.Fill(t.ctx, old, []byte("old"), long) // repeated: nothing newer is there
			if !t.has(other, key, old.Token, "old").Stale {
				t.Error("a repeated fill made the entry fresh")
			}
			cold := t.granted(c, t.key(), store.Token{})
			t.ok(as[store.Expirer](t, other).Expire(t.ctx, cold.Key))
			t.fillLost(c, cold)
			t.misses(other, cold.Key)
		},
	},
	{
		name:    "Law3ExpireReplacesByDeleting",
		promise: "in a store that cannot mark an entry stale, store.Expire deletes it",
		needs:   func(b *Backend) bool { return !b.Expires },
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			t.load(c, key, "old")
			t.ok(store.Expire(t.ctx, c, key))
			t.misses(other, key)
		},
	},
	{
		name:    "DeleteAllDeletesEach",
		promise: "DeleteAll deletes each key as Delete does: entries, failures and leases, also where there is nothing",
		run:     deleteAll,
	},
	{
		name:    "GetAllReadsEach",
		promise: "GetAll reads each key as Get does",
		needs:   func(b *Backend) bool { return b.ReadsInBatch },
		run:     getAll,
	},
	{
		name:    "ShardsAreNamed",
		promise: "Shard names the server of a key: always the same, whoever asks",
		needs:   func(b *Backend) bool { return b.Shards },
		run: func(t *run) {
			c, other := t.caches()
			for _, key := range append(oddKeys(), t.key()) {
				name := store.ShardOf(c, key)
				if again, others := store.ShardOf(c, key), store.ShardOf(other, key); name == "" || again != name || others != name {
					t.Errorf("the server of key %.40q is named %q, then %q, by another %q", key, name, again, others)
				}
			}
		},
	},
	{
		name:    "ValuesAreNotMixedUp",
		promise: "a value that was read is not changed by what happens to the entry later",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.load(c, key, "first")
			e := t.has(other, key, l.Token, "first")
			next := t.granted(c, key, l.Token)
			t.ok(c.Fill(t.ctx, next, []byte("other"), long))
			t.ok(c.Delete(t.ctx, key))
			if !bytes.Equal(e.Value, []byte("first")) {
				t.Errorf("a value that was read became %q", e.Value)
			}
		},
	},
	{
		name:    "ClockGoesOn",
		promise: "Now estimates the server's time: it never goes back, and agrees with this machine's clock, on which the server runs",
		needs:   func(b *Backend) bool { return b.TellsTime },
		run: func(t *run) {
			c, _ := t.caches()
			t.load(c, t.key(), "value")
			last := store.Now(c)
			if off := time.Since(last).Abs(); off > time.Minute {
				t.Errorf("the store's clock is off by %v", off)
			}
			for range 1000 {
				now := store.Now(c)
				if now.Before(last) {
					t.Fatalf("the store's clock went back by %v", last.Sub(now))
				}
				last = now
			}
		},
	},
}

func getAll(t *run) {
	c, other := t.caches()
	g := as[store.BatchGetter](t, other)
	first, second, held := t.load(c, t.key(), "first"), t.load(c, t.key(), ""), t.granted(c, t.key(), store.Token{})
	keys := []string{first.Key, t.key(), second.Key, held.Key, first.Key}
	want := []store.Entry{{Version: first.Token, Value: []byte("first")}, {}, {Version: second.Token}, {}, {Version: first.Token, Value: []byte("first")}}
	entries, errs := g.GetAll(t.ctx, keys)
	if len(entries) != len(keys) || len(errs) != len(keys) {
		t.Fatalf("%d keys were answered with %d entries and %d errors", len(keys), len(entries), len(errs))
	}
	for i, e := range entries {
		if want[i].Version.IsZero() {
			t.wantErr(errs[i], store.ErrMiss)
			continue
		}
		t.ok(errs[i])
		t.is(e, want[i].Version, string(want[i].Value))
	}
	if entries, errs = g.GetAll(t.ctx, nil); len(entries) != 0 || len(errs) != 0 {
		t.Errorf("no keys were answered with %v and %v", entries, errs)
	}
}

func deleteAll(t *run) {
	c, other := t.caches()
	filled, leased, failed, refreshed := t.load(c, t.key(), "value"), t.granted(c, t.key(), store.Token{}), t.key(), t.load(c, t.key(), "value")
	t.fail(c, failed, store.Token{}, store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long})
	refresh := t.granted(c, refreshed.Key, refreshed.Token)
	kept := t.load(c, t.key(), "kept")
	keys := []string{filled.Key, t.key(), leased.Key, failed, refreshed.Key, filled.Key}
	errs := store.DeleteAll(t.ctx, other, keys)
	if len(errs) != len(keys) {
		t.Fatalf("%d keys were answered with %d errors", len(keys), len(errs))
	}
	for i, err := range errs {
		t.ok(err)
		t.misses(c, keys[i])
	}
	t.fillLost(c, leased)
	t.fillLost(c, refresh)
	t.claim(c, request(failed, long), store.Granted)
	t.has(c, kept.Key, kept.Token, "kept")
	if errs := store.DeleteAll(t.ctx, other, nil); len(errs) != 0 {
		t.Errorf("no keys were answered with %v", errs)
	}
}
