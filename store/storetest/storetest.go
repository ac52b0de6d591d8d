// Package storetest is the specification of package store as a test suite, for
// the stores of this module and for anyone's.
//
// A store runs it from one test:
//
//	func TestConformance(t *testing.T) {
//		storetest.Test(t, storetest.Backend{
//			Cache:   func(t testing.TB) store.Cache { return newStore(t) },
//			Leaser:  func(t testing.TB) store.Leaser { return newStore(t) },
//			Watches: true,
//		})
//	}
//
// Every sentence of the contract has a case, and a case that fails prints the
// sentence. [FaultyCache] and [FaultyLeaser] put faults in front of a store,
// for the tests of whoever uses one.
package storetest

import (
	"testing"
	"testing/synctest"

	"github.com/herdgate/herdgate/store"
)

// Backend is a store to be tested: how to make one, and what it declares.
// What it declares is compared with what is found, and any difference fails:
// neither a promise that is not kept nor one that is kept in secret passes.
type Backend struct {
	// Cache and Leaser return a client of a running server. Each is called
	// once per case and may be nil if the store does not play the role.
	// Cases use random keys, so one server may serve them all; nobody else
	// may write to it meanwhile.
	Cache  func(t testing.TB) store.Cache
	Leaser func(t testing.TB) store.Leaser

	// Second returns another client of the same server, as a second process
	// would have it, given what Cache or Leaser returned. It must play the
	// same role. Nil means that both are the same.
	Second func(t testing.TB, first any) any

	// Facts are what store.FactsOf is expected to say. The suite chooses
	// its times to live by them.
	Facts store.Facts

	Watches        bool // store.Watcher
	Queues         bool // store.Queuer
	Puts           bool // store.Putter
	Expires        bool // store.Expirer
	ReadsInBatch   bool // store.BatchGetter
	RenewsInBatch  bool // store.BatchRenewer
	DeletesInBatch bool // store.BatchDeleter
	Breaks         bool // store.Breaker
	TellsTime      bool // store.Clock
	Shards         bool // store.Sharder, with a name for every key
	Announces      bool // store.Announcer, and it does not say errors.ErrUnsupported

	// ClaimsInSteps says that a Claim to refresh an entry is several commands
	// of the server. While it is under way others may be shown its lease as
	// the Holder, although it answers Found in the end, since the entry was
	// replaced meanwhile.
	ClaimsInSteps bool

	// MaxValue is the length of a value that the server refuses. Zero means
	// that it refuses none.
	MaxValue int

	// Seed is that of the cases with random calls, to repeat what a failure
	// printed. Zero picks a new one for each.
	Seed uint64

	// Virtual runs each case in a testing/synctest bubble, where waiting
	// takes no time. It is for stores without a server. Other cases run in
	// parallel.
	Virtual bool
}

// Test runs the suite against b.
func Test(t *testing.T, b Backend) {
	t.Helper()
	if b.Cache == nil && b.Leaser == nil {
		t.Fatal("storetest: Backend has neither Cache nor Leaser")
	}
	for _, r := range roles(&b) {
		t.Run(r.name, func(t *testing.T) {
			for _, c := range r.cases {
				t.Run(c.name, func(t *testing.T) { runCase(t, r, c) })
			}
		})
	}
}

// role is one of the two roles of a store with the cases that concern it.
type role struct {
	name  string
	b     *Backend
	open  func(t testing.TB) any
	cases []testCase
}

// testCase is one promise of the contract.
type testCase struct {
	name    string
	promise string                // printed when the case fails
	needs   func(b *Backend) bool // nil means that every store must keep it
	run     func(t *run)
}

// roles returns the roles that b plays, with the cases that apply to it.
func roles(b *Backend) []role {
	var rs []role
	if b.Cache != nil {
		rs = append(rs, role{name: "Cache", b: b,
			open:  func(t testing.TB) any { return b.Cache(t) },
			cases: applicable(b, cacheCapabilities, leaseCases, lifetimeCases, fillCases, claimCases, failureCases, valueCases, putCases, cacheWatchCases, announcementCases, bothRoleCases, cacheModelCases, cacheLinearCases)})
	}
	if b.Leaser != nil {
		rs = append(rs, role{name: "Leaser", b: b,
			open:  func(t testing.TB) any { return b.Leaser(t) },
			cases: applicable(b, leaserCapabilities, leaseCases, lifetimeCases, leaserCases, queueCases, leaserWatchCases, leaserModelCases, leaserLinearCases)})
	}
	return rs
}

func applicable(b *Backend, tables ...[]testCase) []testCase {
	var cases []testCase
	for _, table := range tables {
		for _, c := range table {
			if c.needs == nil || c.needs(b) {
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// runCase runs c as a test of its own.
func runCase(t *testing.T, r role, c testCase) {
	if r.b.Virtual {
		synctest.Test(t, func(t *testing.T) { c.do(t, r) })
		return
	}
	t.Parallel()
	c.do(t, r)
}

// do runs the case on t.
func (c testCase) do(t testing.TB, r role) {
	defer func() {
		if t.Failed() {
			t.Logf("the broken promise: %s", c.promise)
		}
	}()
	c.run(newRun(t, r))
}
