package storetest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/herdgate/herdgate/store"
)

func TestReferencePasses(t *testing.T) {
	for name, lines := range check(t, memory()) {
		t.Errorf("%s: %s", name, strings.Join(lines, "\n"))
	}
}

// both is a store that plays both roles.
type both interface {
	store.Cache
	store.Leaser
}

// brokenStores break a promise each, and name the cases that must notice.
var brokenStores = []struct {
	name  string
	open  func() both
	cases string
}{
	{"grants twice", func() both { return grantsTwice{small()} },
		"Cache/Law1OneGrantAmongMany Cache/Law1OneLoadAmongMany Cache/Law1EarlyRefresh Leaser/Law1OneGrantAmongMany Leaser/FencesGrow"},
	{"keeps the roles apart", func() both { return apart{small()} },
		"Cache/Law1OneLeaseForBothRoles Cache/Law1OneLeaseBesideAnEntry"},
	{"looks, then takes", func() both { return looksThenTakes{small()} },
		"Leaser/Law1OneGrantAmongMany"},
	{"compares tokens only", func() both { return newTokenOnly() },
		"Cache/Law2DelayedClaimMakesANewGrant Cache/Law2FillComparesTokenAndGrant Cache/Law2RenewComparesTokenAndGrant Leaser/Law2EndComparesTokenAndGrant"},
	{"fills always", func() both { return fillsAlways{small()} },
		"Cache/Law2FillAfterDelete Cache/Law2FillAfterExpiry Cache/Law2FillAfterANewGrant Cache/Law2PutEndsTheLease Cache/Law2ExpireEndsTheLease Cache/YieldKeepsTheEntry"},
	{"fills once", func() both { return fillsOnce{small(), &sync.Map{}} },
		"Cache/Law11FillRepeated Cache/Law11RepliesLost"},
	{"ends no lease", func() both { return endsNoLease{small(), &sync.Map{}} },
		"Cache/Law2FillAfterDelete Cache/Law2FillAfterDeleteOfAnEntry Cache/Law3DeleteDuringAFill Cache/Law2PutEndsTheLease Cache/Law2ExpireEndsTheLease"},
	{"new grants", func() both { return newGrants{small()} },
		"Cache/Law11SameTokenSameGrant Cache/Law11RepliesLost Leaser/Law11SameTokenSameGrant Leaser/Law11ReplyLost Leaser/FencesStandStill"},
	{"old grants", func() both { return oldGrants{small()} },
		"Cache/GrantsAreNeverUsedAgain Cache/Law8NobodyElseBeforeExpires Leaser/GrantsAreNeverUsedAgain Leaser/Law8ExpiresCountsFromTheRequest"},
	{"ignores what was seen", func() both { return ignoresSeen{small()} },
		"Cache/FoundIfNewerThanSeen Cache/FoundBeforeHeld Cache/FoundBeforeGranted Cache/SeenButGone"},
	{"watches late", func() both { return lateWatch{small()} },
		"Cache/WatchIsLive Cache/WatchesAreIndependent Cache/WatchOfAnyKey Leaser/ReleaseTells"},
	{"names no grants", func() both { return events{small(), func(e *store.Event) { e.Grant = 0 }} },
		"Cache/FillTellsTheValue Cache/WatchIsLive Leaser/BreakTells"},
	{"tells other values", func() both {
		return events{small(), func(e *store.Event) { e.Entry = store.Entry{Version: store.NewToken()} }}
	}, "Cache/FillTellsTheValue Cache/YieldTells Cache/Law3DeleteTells Cache/DeleteAllTells Cache/Law3PutTells Cache/ExpireTells"},
	{"tells no turns", func() both { return events{small(), func(e *store.Event) { e.Lease = store.Lease{} }} },
		"Cache/WatchKeepsTheNewest Leaser/TurnIsToldByAnEvent"},
	{"hides capabilities", func() both { s := small(); return hides{s, s} },
		"Cache/Law13CapabilitiesAsDeclared Leaser/Law13CapabilitiesAsDeclared"},
	{"keeps nothing", func() both { return keepsNothing{small()} },
		"Cache/Law6FailureIsShared Cache/Law6FailureIsHandedOn Cache/FailureBesideAnEntry Cache/YieldIsFinal Cache/ExpireMarksStale"},
	{"keeps too much", func() both { return keepsTooMuch{small(), &sync.Map{}} },
		"Cache/Law6FailureIsForgotten Cache/FailureWithoutDataIsNone Cache/FillForgetsTheFailure Cache/DeleteForgetsTheFailure Cache/PutForgetsTheFailure Cache/ExpireForgetsTheFailure Cache/EntriesExpire"},
	{"deaf", func() both { return deaf{small()} },
		"Cache/RenewRestartsTimeToLive Cache/Law8ExpiredLeaseIsLost Cache/RenewAllAnswersEachLease Leaser/RefusedLearnsTheHolder Leaser/Law8NobodyElseBeforeExpires"},
	{"forces", func() both { return forces{small()} },
		"Cache/Law2EndComparesTokenAndGrant Cache/EndedLeaseIsLost Cache/NothingToRenewOrEnd Leaser/Law2EndComparesTokenAndGrant Leaser/EndedLeaseIsLost"},
	{"C keys", func() both { return cKeys{small()} },
		"Cache/GetAllReadsEach Cache/ShardsAreNamed Cache/Law12AnyKey Cache/Law12AnyKeyAndValue Cache/Law12AnyValue Leaser/Law12AnyKey"},
	{"remembers", func() both { return remembers{small(), &sync.Map{}} },
		"Cache/Law12AnyValue Cache/PutStores Cache/Law1EarlyRefresh"},
	{"reuses", func() both { return &reuses{mem: small()} },
		"Cache/ValuesAreNotMixedUp Cache/ClockGoesOn"},
	{"announces nothing", func() both {
		return tells{small(), func(c store.Change) (store.Change, bool) { return c, false }}
	}, "Cache/AnnounceIsLive Cache/DeleteIsAnnounced Cache/DeleteAllIsAnnounced Cache/PutIsAnnounced Cache/ExpireIsAnnounced"},
	{"announces doubt", func() both {
		return tells{small(), func(store.Change) (store.Change, bool) { return store.Change{All: true}, true }}
	}, "Cache/DeleteIsAnnounced Cache/DeleteAllIsAnnounced Cache/PutIsAnnounced Cache/ExpireIsAnnounced"},
	{"announces C keys", func() both {
		return tells{small(), func(c store.Change) (store.Change, bool) { return store.Change{Key: cut(c.Key)}, true }}
	}, "Cache/Law12AnyKeyIsAnnounced"},
	{"announces late", func() both { return tellsLate{small()} },
		"Cache/AnnounceIsLive"},
	{"announces on", func() both { return tellsOnForever{small()} },
		"Cache/StopEndsAnnouncements"},
	{"announces for a call", func() both { return tellsWithContext{small()} },
		"Cache/AnnouncementsOutliveTheirContext"},
	{"announces unsupported", func() both { return tellsNothing{small()} },
		"Cache/Law13CapabilitiesAsDeclared"},
	{"deletes later", func() both { return deletesLater{small()} },
		"Cache/Law3DeleteHidesTheEntry Cache/Law3DeleteDuringAFill Cache/DeleteEndsAnyLease Cache/MissSaysWhy"},
	{"pushes in", func() both { return pushesIn{small()} },
		"Leaser/FirstComeFirstServed Leaser/TurnIsToldByAnEvent"},
	{"never leaves", func() both { return neverLeaves{small()} },
		"Leaser/DeadWaiterCostsQueueTTL Leaser/LeaveGivesUpThePlace Leaser/LeaveReleasesTheLease"},
	{"forgets places", func() both { return &forgetsPlaces{mem: small()} },
		"Leaser/AskingAgainKeepsThePlace"},
	{"counts seconds", func() both { return seconds{small()} },
		"Cache/TinyTimesToLive Cache/HugeTimesToLive Cache/TinyTimesToLiveOfEntries Cache/HugeTimesToLiveOfEntries Leaser/TinyTimesToLive Leaser/HugeTimesToLive"},
	{"careless", func() both { return careless{small()} },
		"Cache/RequestsAreValidated Cache/TimesToLiveArePositive Cache/TooLargeLeavesTheLease Leaser/RequestsAreValidated"},
}

// TestBrokenStoresAreCaught runs the suite against stores that break a
// promise, and checks that every case notices one of them.
func TestBrokenStoresAreCaught(t *testing.T) {
	idle := map[string]bool{}
	for _, r := range roles(new(memory())) {
		for _, c := range r.cases {
			idle[r.name+"/"+c.name] = true
		}
	}
	for _, broken := range brokenStores {
		t.Run(broken.name, func(t *testing.T) {
			b := memory()
			b.Cache = func(testing.TB) store.Cache { return broken.open() }
			b.Leaser = func(testing.TB) store.Leaser { return broken.open() }
			failed := check(t, b)
			for name := range strings.FieldsSeq(broken.cases) {
				if failed[name] == nil {
					t.Errorf("%s did not notice", name)
				}
			}
			for name := range failed {
				delete(idle, name)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(idle)) {
		t.Errorf("no broken store is caught by %s", name)
	}
}

// TestRandomCasesNotice checks that the cases with random calls find by
// themselves what the others are written for.
func TestRandomCasesNotice(t *testing.T) {
	for _, random := range []struct{ store, cases string }{
		{"grants twice", "Cache/Law2Linearizable Leaser/Law1Linearizable Cache/ModelRandomCalls Leaser/ModelRandomCalls"},
		{"fills always", "Cache/Law2Linearizable Cache/ModelRandomCalls"},
		{"new grants", "Cache/Law2Linearizable Leaser/Law1Linearizable"},
		{"forces", "Cache/Law2Linearizable Leaser/Law1Linearizable Cache/ModelRandomCalls Leaser/ModelRandomCalls"},
		{"remembers", "Cache/Law2Linearizable Cache/ModelRandomCalls"},
	} {
		t.Run(random.store, func(t *testing.T) {
			b := memory()
			for _, broken := range brokenStores {
				if broken.name == random.store {
					b.Cache = func(testing.TB) store.Cache { return broken.open() }
					b.Leaser = func(testing.TB) store.Leaser { return broken.open() }
				}
			}
			failed := check(t, b)
			for name := range strings.FieldsSeq(random.cases) {
				if failed[name] == nil {
					t.Errorf("%s did not notice", name)
				}
			}
		})
	}
}

// TestSecretCapabilityIsCaught: a promise that is kept but not declared fails
// too.
func TestSecretCapabilityIsCaught(t *testing.T) {
	for name, hide := range map[string]func(b *Backend){
		"Cache/Law13CapabilitiesAsDeclared":  func(b *Backend) { b.Puts = false },
		"Leaser/Law13CapabilitiesAsDeclared": func(b *Backend) { b.Breaks = false },
		"Leaser/Law13NoFenceInSilence":       func(b *Backend) { b.Facts.Fences = false },
	} {
		b := memory()
		hide(&b)
		if check(t, b)[name] == nil {
			t.Errorf("%s did not notice", name)
		}
	}
}

// TestPromiseIsPrinted checks that a failure says which sentence was broken.
func TestPromiseIsPrinted(t *testing.T) {
	b := memory()
	b.Watches = false
	lines := check(t, b)["Cache/Law13CapabilitiesAsDeclared"]
	if all := strings.Join(lines, "\n"); !strings.Contains(all, capabilityPromise) {
		t.Errorf("the failure says:\n%s", all)
	}
}
