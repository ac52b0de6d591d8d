package storetest

import "github.com/herdgate/herdgate/store"

// putCases are about storing and ending entries without a lease.
var putCases = []testCase{
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
		name:    "ExpireForgetsTheFailure",
		promise: "after Expire a failure of before is forgotten: the next claim is granted, and its failure is kept",
		needs:   expires,
		run: func(t *run) {
			c, other := t.caches()
			f := store.Failure{Data: []byte("boom"), CoolDown: long, Memory: 2 * long}
			old := t.load(c, t.key(), "old")
			for key, seen := range map[string]store.Token{t.key(): {}, old.Key: old.Token} {
				t.fail(c, key, seen, f)
				t.ok(as[store.Expirer](t, other).Expire(t.ctx, key))
				req := request(key, long)
				req.Seen = seen
				a := t.claim(c, req, store.Granted)
				if len(a.Failure.Data) != 0 {
					t.Errorf("the grantee was told %+v", a.Failure)
				}
				t.ok(c.Yield(t.ctx, a.Lease, f))
				req.Token = store.NewToken()
				t.claim(other, req, store.Failed)
			}
			t.has(c, old.Key, old.Token, "old")
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
