package storetest

import (
	"errors"

	"github.com/herdgate/herdgate/store"
)

const capabilityPromise = "a store declares what it can: what store.As and store.FactsOf find is what its Backend says"

var cacheCapabilities = []testCase{{
	name:    "Law13CapabilitiesAsDeclared",
	promise: capabilityPromise,
	run: func(t *run) {
		compareCommon(t)
		compare[store.BatchGetter](t, "ReadsInBatch", t.b.ReadsInBatch)
		compare[store.Putter](t, "Puts", t.b.Puts)
		compare[store.Expirer](t, "Expires", t.b.Expires)
		compare[store.BatchDeleter](t, "DeletesInBatch", t.b.DeletesInBatch)
		compareFound(t, "Announces", t.b.Announces, t.announces)
	},
}}

var leaserCapabilities = []testCase{{
	name:    "Law13CapabilitiesAsDeclared",
	promise: capabilityPromise,
	run: func(t *run) {
		compareCommon(t)
		compare[store.Queuer](t, "Queues", t.b.Queues)
		compare[store.Breaker](t, "Breaks", t.b.Breaks)
		if t.b.Cache == nil && (t.b.Puts || t.b.Expires || t.b.ReadsInBatch || t.b.DeletesInBatch || t.b.Announces) {
			t.Error("the Backend declares Puts, Expires, ReadsInBatch, DeletesInBatch or Announces but has no Cache")
		}
	},
}}

// compareCommon compares what concerns both roles.
func compareCommon(t *run) {
	t.Helper()
	compare[store.Watcher](t, "Watches", t.b.Watches)
	compare[store.BatchRenewer](t, "RenewsInBatch", t.b.RenewsInBatch)
	compare[store.Clock](t, "TellsTime", t.b.TellsTime)
	compareFound(t, "Shards", t.b.Shards, func(s any) bool { return store.ShardOf(s, t.key()) != "" })
	if got := store.FactsOf(t.first); got != t.b.Facts {
		t.Errorf("store.FactsOf says %+v, the Backend %+v", got, t.b.Facts)
	}
	if t.b.Leaser == nil && (t.b.Queues || t.b.Breaks || t.b.Facts.Fences) {
		t.Error("the Backend declares Queues, Breaks or Fences but has no Leaser")
	}
}

func compare[T any](t *run, name string, declared bool) {
	t.Helper()
	compareFound(t, name, declared, func(s any) bool {
		_, found := store.As[T](s)
		return found
	})
}

func compareFound(t *run, name string, declared bool, find func(s any) bool) {
	t.Helper()
	for _, s := range []any{t.first, t.again} {
		if found := find(s); found != declared {
			t.Errorf("%s: declared %t, found %t", name, declared, found)
		}
	}
}

// announces reports whether s tells what ended. What its server of today
// cannot do it says by an error.
func (t *run) announces(s any) bool {
	t.Helper()
	a, found := store.As[store.Announcer](s)
	if !found {
		return false
	}
	stop, err := a.Announce(t.ctx, func(store.Change) {})
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	t.ok(err)
	stop()
	return true
}

func watches(b *Backend) bool   { return b.Watches }
func announces(b *Backend) bool { return b.Announces }
func expires(b *Backend) bool   { return b.Expires }
func queues(b *Backend) bool    { return b.Queues }
func breaks(b *Backend) bool    { return b.Breaks }
func fences(b *Backend) bool    { return b.Facts.Fences }
