package storetest

import (
	"bytes"
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// valueCases are about entries: their bytes, their life, and how they are
// read.
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
		name:    "TinyTimesToLiveOfEntries",
		promise: "a store rounds a time to live up to what its server can count: the shortest is no error, and the entry ends soon",
		run: func(t *run) {
			c, other := t.caches()
			l := t.granted(c, t.key(), store.Token{})
			t.ok(c.Fill(t.ctx, l, []byte("value"), time.Nanosecond))
			failing := t.granted(c, t.key(), store.Token{})
			t.ok(c.Yield(t.ctx, failing, store.Failure{Data: []byte("boom"), CoolDown: time.Nanosecond, Memory: time.Nanosecond}))
			t.eventually("the entry and the failure expire", func() bool {
				_, err := other.Get(t.ctx, l.Key)
				a, claimErr := other.Claim(t.ctx, request(failing.Key, long))
				t.ok(claimErr)
				return errors.Is(err, store.ErrMiss) && a.State != store.Failed
			})
		},
	},
	{
		name:    "HugeTimesToLiveOfEntries",
		promise: "a time to live of years is no less than one of minutes, of an entry and of a failure",
		run: func(t *run) {
			c, other := t.caches()
			for _, ttl := range hugeTTLs {
				l := t.granted(c, t.key(), store.Token{})
				t.ok(c.Fill(t.ctx, l, []byte("value"), ttl))
				time.Sleep(pause)
				t.has(other, l.Key, l.Token, "value")
				version := store.NewToken()
				t.ok(store.Put(t.ctx, c, l.Key, version, []byte("put"), ttl))
				t.has(other, l.Key, version, "put")
				failing := t.granted(c, t.key(), store.Token{})
				t.ok(c.Yield(t.ctx, failing, store.Failure{Data: []byte("boom"), CoolDown: ttl, Memory: ttl}))
				time.Sleep(pause)
				t.claim(other, request(failing.Key, long), store.Failed)
			}
		},
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
