package storetest

import (
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// fillCases say when a lease may fill, and when not any more.
var fillCases = []testCase{
	{
		name:    "FillStoresAndEndsTheLease",
		promise: "Fill stores value as the entry with version l.Token and ends the lease, atomically",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.load(c, key, "value")
			if e := t.has(other, key, l.Token, "value"); e.Stale {
				t.Error("a new entry is stale")
			}
			_, err := c.Renew(t.ctx, l, long)
			t.wantErr(err, store.ErrLost)
			t.wantErr(c.Yield(t.ctx, l, store.Failure{}), store.ErrLost)
			t.granted(other, key, l.Token)
		},
	},
	{
		name:    "Law2FillAfterDelete",
		promise: "no Fill of a lease granted before a Delete succeeds after it",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.granted(c, key, store.Token{})
			t.ok(other.Delete(t.ctx, key))
			t.fillLost(c, l)
			t.misses(other, key)
		},
	},
	{
		name:    "Law2FillAfterDeleteOfAnEntry",
		promise: "no Fill of an early refresh granted before a Delete succeeds after it",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			l := t.granted(c, key, old.Token)
			t.ok(other.Delete(t.ctx, key))
			t.fillLost(c, l)
			t.fillLost(c, old)
			t.misses(other, key)
		},
	},
	{
		name:    "Law2FillAfterExpiry",
		promise: "Fill returns ErrLost once the lease expired, also when nobody took it",
		run: func(t *run) {
			c, other := t.caches()
			req := request(t.key(), t.short())
			l := t.claim(c, req, store.Granted).Lease
			time.Sleep(t.over(t.short()))
			t.fillLost(c, l)
			t.misses(other, req.Key)
			t.granted(other, req.Key, store.Token{})
		},
	},
	{
		name:    "Law2FillAfterANewGrant",
		promise: "Fill returns ErrLost when another lease took the place of this one, and leaves that one alone",
		run: func(t *run) {
			c, other := t.caches()
			req := request(t.key(), t.short())
			l := t.claim(c, req, store.Granted).Lease
			a, _ := t.untilClaimed(other, req.Key, store.Token{})
			t.fillLost(c, l)
			t.ok(other.Fill(t.ctx, a.Lease, []byte("new"), long))
			t.fillLost(c, l)
			t.has(c, req.Key, a.Lease.Token, "new")
		},
	},
	{
		name:    "Law2FillComparesTokenAndGrant",
		promise: "Fill returns ErrLost if the live lease differs in token or grant, and leaves entry and lease as they are",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.granted(c, key, store.Token{})
			for _, wrong := range impostors(l) {
				t.fillLost(other, wrong)
			}
			t.misses(c, key)
			t.ok(c.Fill(t.ctx, l, []byte("value"), long))
			t.has(c, key, l.Token, "value")
		},
	},
	{
		name:    "Law2DelayedClaimMakesANewGrant",
		promise: "a claim that is delivered after a Delete makes a new grant, which the fill of the old one does not match",
		run: func(t *run) {
			c, other := t.caches()
			req := request(t.key(), long)
			l := t.claim(c, req, store.Granted).Lease
			t.ok(other.Delete(t.ctx, req.Key))
			delayed := t.claim(c, req, store.Granted).Lease
			if delayed.Grant == l.Grant {
				t.Fatalf("grant %d survived the Delete", l.Grant)
			}
			t.fillLost(c, l)
			t.misses(other, req.Key)
			t.ok(c.Fill(t.ctx, delayed, []byte("new"), long))
			t.has(other, req.Key, req.Token, "new")
		},
	},
	{
		name:    "Law3DeleteHidesTheEntry",
		promise: "after Delete returned, no Get or Claim answers the old entry",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			for range 20 {
				t.load(c, key, "old")
				t.ok(other.Delete(t.ctx, key))
				t.misses(c, key)
				t.misses(other, key)
				l := t.granted(c, key, store.Token{})
				t.ok(c.Yield(t.ctx, l, store.Failure{}))
			}
		},
	},
	{
		name:    "Law3DeleteDuringAFill",
		promise: "of a Delete and the Fill of a lease granted before, in any order, no entry is left",
		run: func(t *run) {
			c, other := t.caches()
			for range 50 {
				key := t.key()
				l := t.granted(c, key, store.Token{})
				var fill sync.WaitGroup
				fill.Go(func() { _ = c.Fill(t.ctx, l, []byte("old"), long) })
				err := other.Delete(t.ctx, key)
				fill.Wait()
				t.ok(err)
				t.misses(c, key)
			}
		},
	},
	{
		name:    "DeleteEndsAnyLease",
		promise: "Delete ends any lease on the key: it is lost, and the key is free; a key that is not there is no error",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			t.ok(other.Delete(t.ctx, key))
			l := t.granted(c, key, store.Token{})
			t.ok(other.Delete(t.ctx, key))
			_, err := c.Renew(t.ctx, l, long)
			t.wantErr(err, store.ErrLost)
			t.wantErr(c.Yield(t.ctx, l, store.Failure{}), store.ErrLost)
			t.granted(other, key, store.Token{})
		},
	},
	{
		name:    "Law11FillRepeated",
		promise: "a Fill repeated after a lost reply succeeds again as long as nothing newer is there",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.load(c, key, "value")
			t.ok(c.Fill(t.ctx, l, []byte("value"), long))
			t.has(other, key, l.Token, "value")
			next := t.granted(other, key, l.Token)
			t.ok(other.Fill(t.ctx, next, []byte("newer"), long))
			t.fillLost(c, l)
			t.has(other, key, next.Token, "newer")
		},
	},
	{
		name:    "Law11RepliesLost",
		promise: "a claim and a fill whose replies were lost can be repeated: they are neither lost nor done twice",
		run:     repliesLost,
	},
	{
		name:    "YieldKeepsTheEntry",
		promise: "Yield ends the lease without a value: an entry that was there stays",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			l := t.granted(c, key, old.Token)
			t.ok(c.Yield(t.ctx, l, store.Failure{}))
			t.has(other, key, old.Token, "old")
			t.fillLost(c, l)
			t.has(other, key, old.Token, "old")
		},
	},
	{
		name:    "TooLargeLeavesTheLease",
		promise: "Fill returns ErrTooLarge if the server refuses the size, and leaves entry and lease as they are",
		needs:   func(b *Backend) bool { return b.MaxValue > 0 },
		run: func(t *run) {
			c, other := t.caches()
			key, huge := t.key(), make([]byte, t.b.MaxValue)
			old := t.load(c, key, "old")
			l := t.granted(c, key, old.Token)
			t.wantErr(c.Fill(t.ctx, l, huge, long), store.ErrTooLarge)
			t.has(other, key, old.Token, "old")
			req := request(key, long)
			req.Seen = old.Token
			t.claim(other, req, store.Held)
			t.ok(c.Yield(t.ctx, l, store.Failure{}))

			cold := t.granted(c, t.key(), store.Token{})
			t.wantErr(c.Fill(t.ctx, cold, huge, long), store.ErrTooLarge)
			t.misses(other, cold.Key)
			t.ok(c.Fill(t.ctx, cold, []byte("small"), long))
			t.wantErr(store.Put(t.ctx, c, key, store.NewToken(), huge, long), store.ErrTooLarge)
		},
	},
	{
		name:    "TimesToLiveArePositive",
		promise: "Fill and Put with a time to live that is not positive are errors, never entries for ever",
		run: func(t *run) {
			c, _ := t.caches()
			l := t.granted(c, t.key(), store.Token{})
			for _, ttl := range []time.Duration{0, -time.Second} {
				if c.Fill(t.ctx, l, []byte("value"), ttl) == nil {
					t.Errorf("Fill took the time to live %v", ttl)
				}
				if store.Put(t.ctx, c, t.key(), store.NewToken(), []byte("value"), ttl) == nil {
					t.Errorf("Put took the time to live %v", ttl)
				}
			}
			t.misses(c, l.Key)
		},
	},
}

// repliesLost loses every first reply of a Claim and of a Fill.
func repliesLost(t *run) {
	inner, other := t.caches()
	lost := map[string]bool{}
	c := FaultyCache(inner, func(op Op) Fault {
		if (op.Name != "Claim" && op.Name != "Fill") || lost[op.Name+op.Key] {
			return Fault{}
		}
		lost[op.Name+op.Key] = true
		return Fault{Applied: true, Err: ErrFault}
	})
	req := request(t.key(), long)
	_, err := c.Claim(t.ctx, req)
	t.wantErr(err, ErrFault)
	held := t.claim(other, request(req.Key, long), store.Held)
	l := t.claim(c, req, store.Granted).Lease
	if l.Grant != held.Holder.Grant {
		t.Fatalf("grant %d became %d when asked again", held.Holder.Grant, l.Grant)
	}
	t.wantErr(c.Fill(t.ctx, l, []byte("value"), long), ErrFault)
	t.has(other, req.Key, l.Token, "value")
	t.ok(c.Fill(t.ctx, l, []byte("value"), long))
	t.has(other, req.Key, l.Token, "value")
	if a := t.claim(c, req, store.Found); a.Entry.Version != l.Token {
		t.Errorf("the claim found version %v, want %v", a.Entry.Version, l.Token)
	}
}
