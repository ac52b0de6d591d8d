package memstore_test

import (
	"testing"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

func TestConformance(t *testing.T) {
	const most = 1 << 20
	open := func(testing.TB) *memstore.Store { return memstore.New(&memstore.Options{MaxBytes: 64 * most}) }
	storetest.Test(t, storetest.Backend{
		Cache:          func(t testing.TB) store.Cache { return open(t) },
		Leaser:         func(t testing.TB) store.Leaser { return open(t) },
		Facts:          store.Facts{Fences: true, Local: true},
		Watches:        true,
		Announces:      true,
		Queues:         true,
		Puts:           true,
		Expires:        true,
		RenewsInBatch:  true,
		DeletesInBatch: true,
		Breaks:         true,
		TellsTime:      true,
		MaxValue:       64*most + 1,
		Virtual:        true,
	})
}
