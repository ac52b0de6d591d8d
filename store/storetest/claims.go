package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// claimCases check the answers to a Claim, in their order.
var claimCases = []testCase{
	{
		name:    "FoundIfNewerThanSeen",
		promise: "Found: there is an entry, and its version is not req.Seen",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.load(c, key, "value")
			for _, seen := range []store.Token{{}, store.NewToken()} {
				req := request(key, long)
				req.Seen = seen
				t.is(t.claim(other, req, store.Found).Entry, l.Token, "value")
			}
		},
	},
	{
		name:    "Law1EarlyRefresh",
		promise: "Granted for the version seen: one refreshes a fresh entry early, the others are Held and may go on reading it",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			l := t.granted(c, key, old.Token)
			t.has(other, key, old.Token, "old")
			req := request(key, long)
			req.Seen = old.Token
			if a := t.claim(other, req, store.Held); a.Holder.Grant != l.Grant {
				t.Errorf("the holder is shown as %+v, the grant is %d", a.Holder, l.Grant)
			}
			t.ok(c.Fill(t.ctx, l, []byte("new"), long))
			t.is(t.claim(other, req, store.Found).Entry, l.Token, "new")
			t.has(other, key, l.Token, "new")
		},
	},
	{
		name:    "FoundBeforeHeld",
		promise: "who did not see the entry is answered Found, also while another refreshes it",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			t.granted(c, key, old.Token)
			t.is(t.claim(other, request(key, long), store.Found).Entry, old.Token, "old")
		},
	},
	{
		name:    "FoundBeforeGranted",
		promise: "a newer entry is Found, also by a token that has the live lease or had one",
		run: func(t *run) {
			c, other := t.caches()
			req := request(t.key(), long)
			t.ok(c.Fill(t.ctx, t.claim(c, req, store.Granted).Lease, []byte("value"), long))
			t.claim(other, req, store.Found)
			refresh := request(req.Key, long)
			refresh.Seen = req.Token
			t.claim(c, refresh, store.Granted)
			refresh.Seen = store.Token{}
			t.is(t.claim(c, refresh, store.Found).Entry, req.Token, "value")
		},
	},
	{
		name:    "SeenButGone",
		promise: "a claim that saw an entry is granted when there is none any more",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			old := t.load(c, key, "old")
			t.ok(other.Delete(t.ctx, key))
			l := t.granted(c, key, old.Token)
			t.ok(c.Fill(t.ctx, l, []byte("new"), long))
			t.has(other, key, l.Token, "new")
		},
	},
	{
		name:    "RepeatedChangesNothing",
		promise: "a request that says it is repeated gets the same answers as one that does not",
		run: func(t *run) {
			c, other := t.caches()
			req := request(t.key(), long)
			req.Repeated = true
			l := t.claim(c, req, store.Granted).Lease
			if again := t.claim(c, req, store.Granted).Lease; again.Grant != l.Grant {
				t.Errorf("grant %d became %d when asked again", l.Grant, again.Grant)
			}
			next := request(req.Key, long)
			next.Repeated = true
			t.claim(other, next, store.Held)
			t.ok(c.Fill(t.ctx, l, []byte("value"), long))
			t.claim(other, next, store.Found)
			next.Seen = req.Token
			t.claim(other, next, store.Granted)
		},
	},
	{
		name:    "MissSaysWhy",
		promise: "a MissError matches ErrMiss, and its Answer is Held or Failed, as long as a Claim would be answered so",
		run: func(t *run) {
			c, other := t.caches()
			key := t.key()
			l := t.granted(c, key, store.Token{})
			if why := t.why(other, key); why != nil && (why.State != store.Held || why.Holder.Grant != l.Grant) {
				t.Errorf("grant %d is live, the miss says %+v", l.Grant, why)
			}
			t.ok(c.Yield(t.ctx, l, store.Failure{Data: []byte("failed"), CoolDown: long, Memory: long}))
			if why := t.why(other, key); why != nil && (why.State != store.Failed || string(why.Failure.Data) != "failed") {
				t.Errorf("the load failed, the miss says %+v", why)
			}
			t.ok(c.Delete(t.ctx, key))
			if why := t.why(other, key); why != nil {
				t.Errorf("there is nothing, the miss says %+v", why)
			}
			short := request(key, t.short())
			t.claim(c, short, store.Granted)
			f := store.Failure{Data: []byte("failed"), CoolDown: t.short(), Memory: long}
			cooled := t.key()
			t.fail(c, cooled, store.Token{}, f)
			time.Sleep(t.over(t.short()))
			for _, k := range []string{key, cooled} {
				if why := t.why(other, k); why != nil {
					t.Errorf("lease and cool-down are over, the miss says %+v", why)
				}
			}
		},
	},
	{
		name:    "Law1OneLoadAmongMany",
		promise: "of many who miss at once, one loads, and all the others find its value",
		run: func(t *run) {
			for range 5 {
				oneLoadAmongMany(t)
			}
		},
	},
}

// why returns what the miss of key says, nil if it says nothing.
func (t *run) why(c store.Cache, key string) *store.Answer {
	t.Helper()
	_, err := c.Get(t.ctx, key)
	t.wantErr(err, store.ErrMiss)
	var miss *store.MissError
	if !errors.As(err, &miss) {
		return nil
	}
	return &miss.Answer
}

func oneLoadAmongMany(t *run) {
	t.Helper()
	c, other := t.caches()
	var (
		key     = t.key()
		mu      sync.Mutex // protects loads
		loads   int
		callers sync.WaitGroup
	)
	for i := range 16 {
		client := []store.Cache{c, other}[i%2]
		callers.Go(func() {
			req := request(key, long)
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
				a, err := client.Claim(t.ctx, req)
				if err != nil || a.State == store.Found {
					break
				}
				if a.State == store.Granted {
					mu.Lock()
					loads++
					mu.Unlock()
					time.Sleep(pause) // the load
					_ = client.Fill(t.ctx, a.Lease, []byte("value"), long)
				}
			}
		})
	}
	callers.Wait()
	if loads != 1 {
		t.Fatalf("%d callers loaded", loads)
	}
	if e, err := other.Get(t.ctx, key); err != nil || string(e.Value) != "value" {
		t.Fatalf("after the load there is %q, error %v", e.Value, err)
	}
}
