package storetest

import "github.com/herdgate/herdgate/store"

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
	},
}}

var leaserCapabilities = []testCase{{
	name:    "Law13CapabilitiesAsDeclared",
	promise: capabilityPromise,
	run: func(t *run) {
		compareCommon(t)
		compare[store.Queuer](t, "Queues", t.b.Queues)
		compare[store.Breaker](t, "Breaks", t.b.Breaks)
		if t.b.Cache == nil && (t.b.Puts || t.b.Expires || t.b.ReadsInBatch || t.b.DeletesInBatch) {
			t.Error("the Backend declares Puts, Expires, ReadsInBatch or DeletesInBatch but has no Cache")
		}
	},
}}

// compareCommon compares what concerns both roles.
func compareCommon(t *run) {
	t.Helper()
	compare[store.Watcher](t, "Watches", t.b.Watches)
	compare[store.BatchRenewer](t, "RenewsInBatch", t.b.RenewsInBatch)
	compare[store.Clock](t, "TellsTime", t.b.TellsTime)
	compare[store.Sharder](t, "Shards", t.b.Shards)
	if got := store.FactsOf(t.first); got != t.b.Facts {
		t.Errorf("store.FactsOf says %+v, the Backend %+v", got, t.b.Facts)
	}
	if t.b.Leaser == nil && (t.b.Queues || t.b.Breaks || t.b.Facts.Fences) {
		t.Error("the Backend declares Queues, Breaks or Fences but has no Leaser")
	}
}

func compare[T any](t *run, name string, declared bool) {
	t.Helper()
	for _, s := range []any{t.first, t.again} {
		if _, found := store.As[T](s); found != declared {
			t.Errorf("%s: declared %t, found %t", name, declared, found)
		}
	}
}

func watches(b *Backend) bool { return b.Watches }
func expires(b *Backend) bool { return b.Expires }
func queues(b *Backend) bool  { return b.Queues }
func breaks(b *Backend) bool  { return b.Breaks }
func fences(b *Backend) bool  { return b.Facts.Fences }
