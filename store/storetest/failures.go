package storetest

import (
	"time"

	"github.com/herdgate/herdgate/store"
)

// failureCases are about what a load leaves behind instead of a value.
var failureCases = []testCase{
	{
		name:    "Law6FailureIsShared",
		promise: "a failure with data answers claims with Failed for its CoolDown, whoever asks",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			t.fail(c, key, store.Token{}, store.Failure{Data: []byte("boom\x00\n"), CoolDown: long, Memory: 2 * long})
			for range 3 {
				f := t.claim(other, request(key, long), store.Failed).Failure
				if string(f.Data) != "boom\x00\n" {
					t.Errorf("the failure says %q", f.Data)
				}
				if f.CoolDown <= 0 || f.CoolDown > long+t.b.Facts.MinTTL {
					t.Errorf("a cool-down of %v has still %v to go", long, f.CoolDown)
				}
			}
		},
	},
	{
		name:    "Law6FailureIsHandedOn",
		promise: "once the cool-down is over, a claim is granted and told the failure, if it is still remembered",
		run: func(t *run) {
			c, other := t.caches()
			key, before := t.key(), time.Now()
			t.fail(c, key, store.Token{}, store.Failure{Data: []byte("first"), CoolDown: t.short(), Memory: long})
			a, granted := t.untilClaimed(other, key, store.Token{})
			if cooled := granted.Sub(before); cooled < t.short()-t.b.Facts.Early-pause {
				t.Errorf("a cool-down of %v was over after %v", t.short(), cooled)
			}
			if string(a.Failure.Data) != "first" || a.Failure.CoolDown != 0 {
				t.Errorf("the grantee was told %+v", a.Failure)
			}
			t.ok(other.Yield(t.ctx, a.Lease, store.Failure{Data: []byte("second"), CoolDown: long, Memory: long}))
			if f := t.claim(c, request(key, long), store.Failed).Failure; string(f.Data) != "second" {
				t.Errorf("the failure says %q", f.Data)
			}
		},
	},
	{
		name:    "Law6FailureIsForgotten",
		promise: "the store forgets a failure when its Memory is over",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			t.fail(c, key, store.Token{}, store.Failure{Data: []byte("old"), CoolDown: t.short(), Memory: t.short()})
			time.Sleep(t.over(t.short()))
			if a := t.claim(other, request(key, long), store.Granted); len(a.Failure.Data) != 0 {
				t.Errorf("the grantee was told %+v", a.Failure)
			}
		},
	},
	{
		name:    "FailureWithoutDataIsNone",
		promise: "the zero Failure, and one without data, leave nothing",
		run: func(t *run) {
			c, other := t.caches()
			for _, f := range []store.Failure{{}, {CoolDown: long, Memory: long}} {
				key := t.key()
				t.fail(c, key, store.Token{}, f)
				if a := t.claim(other, request(key, long), store.Granted); len(a.Failure.Data) != 0 {
					t.Errorf("the grantee was told %+v", a.Failure)
				}
			}
		},
	},
	{
		name:    "FailureBesideAnEntry",
		promise: "a failed refresh leaves the entry: who has not seen it is answered Found, who has is answered Failed",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			t.fail(c, key, old.Token, store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long})
			t.has(other, key, old.Token, "old")
			t.is(t.claim(other, request(key, long), store.Found).Entry, old.Token, "old")
			req := request(key, long)
			req.Seen = old.Token
			if f := t.claim(other, req, store.Failed).Failure; string(f.Data) != "boom" {
				t.Errorf("the failure says %q", f.Data)
			}
		},
	},
	{
		name:    "FillForgetsTheFailure",
		promise: "a key has one lease or failure at a time: who fills after a failure leaves none",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			t.fail(c, key, store.Token{}, store.Failure{Data: []byte("boom"), CoolDown: t.short(), Memory: long})
			a, _ := t.untilClaimed(other, key, store.Token{})
			t.ok(other.Fill(t.ctx, a.Lease, []byte("value"), long))
			req := request(key, long)
			req.Seen = a.Lease.Token
			if next := t.claim(c, req, store.Granted); len(next.Failure.Data) != 0 {
				t.Errorf("the grantee was told %+v", next.Failure)
			}
		},
	},
	{
		name:    "DeleteForgetsTheFailure",
		promise: "Delete removes the entry and any failure",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			f := store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long}
			t.fail(c, key, store.Token{}, f)
			t.ok(other.Delete(t.ctx, key))
			a := t.claim(c, request(key, long), store.Granted)
			if len(a.Failure.Data) != 0 {
				t.Errorf("the grantee was told %+v", a.Failure)
			}
			t.ok(c.Fill(t.ctx, a.Lease, []byte("value"), long))
			t.fail(c, key, a.Lease.Token, f)
			t.ok(other.Delete(t.ctx, key))
			if a = t.claim(c, request(key, long), store.Granted); len(a.Failure.Data) != 0 {
				t.Errorf("the grantee was told %+v", a.Failure)
			}
		},
	},
	{
		name:    "YieldIsFinal",
		promise: "a yielded lease can neither fill nor yield again",
		run: func(t *run) {
			c, other := t.caches()
			l := t.granted(c, t.key(), store.Token{})
			f := store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long}
			t.ok(c.Yield(t.ctx, l, f))
			t.fillLost(c, l)
			t.wantErr(c.Yield(t.ctx, l, store.Failure{}), store.ErrLost)
			t.claim(other, request(l.Key, long), store.Failed)
		},
	},
}

// fail claims key and yields with f.
func (t *run) fail(c store.Cache, key string, seen store.Token, f store.Failure) {
	t.Helper()
	t.ok(c.Yield(t.ctx, t.granted(c, key, seen), f))
}
