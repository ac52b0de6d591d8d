package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// leaseCases hold for the leases of both roles.
var leaseCases = []testCase{
	{
		name:    "Law1OneGrantAmongMany",
		promise: "while a lease on a key is live, nobody else gets one: of many who ask at once, one is granted and the others are told who",
		run: func(t *run) {
			for range 20 {
				oneGrantAmongMany(t)
			}
		},
	},
	{
		name:    "Law11SameTokenSameGrant",
		promise: "asked again with the token of the live lease, the store returns that lease with the same Grant",
		run: func(t *run) {
			l, other := t.lessors()
			req := request(t.key(), long)
			first := l.must(t, req)
			for _, client := range []lessor{l, other} {
				if again := client.must(t, req); again.Grant != first.Grant {
					t.Fatalf("grant %d became %d when asked again", first.Grant, again.Grant)
				}
			}
		},
	},
	{
		name:    "Law2RenewComparesTokenAndGrant",
		promise: "Renew returns ErrLost if the live lease on the key differs in token or grant, and changes nothing",
		run: func(t *run) {
			l, other := t.lessors()
			lease := l.must(t, request(t.key(), long))
			for _, wrong := range impostors(lease) {
				_, err := other.Renew(t.ctx, wrong, long)
				t.wantErr(err, store.ErrLost)
			}
			_, err := other.Renew(t.ctx, lease, long)
			t.ok(err)
		},
	},
	{
		name:    "Law2EndComparesTokenAndGrant",
		promise: "Release and Yield return ErrLost, and change nothing, if the live lease differs in token or grant",
		run: func(t *run) {
			l, other := t.lessors()
			lease := l.must(t, request(t.key(), long))
			for _, wrong := range impostors(lease) {
				t.wantErr(other.end(t.ctx, wrong), store.ErrLost)
			}
			_, err := other.take(t.ctx, request(lease.Key, long))
			t.held(err)
			t.ok(other.end(t.ctx, lease))
		},
	},
	{
		name:    "EndedLeaseIsLost",
		promise: "a lease that was released or yielded is lost, and the key is free",
		run: func(t *run) {
			l, other := t.lessors()
			lease := l.must(t, request(t.key(), long))
			t.ok(l.end(t.ctx, lease))
			t.wantErr(l.end(t.ctx, lease), store.ErrLost)
			_, err := other.Renew(t.ctx, lease, long)
			t.wantErr(err, store.ErrLost)
			next := other.must(t, request(lease.Key, long))
			t.wantErr(l.end(t.ctx, lease), store.ErrLost)
			t.ok(other.end(t.ctx, next))
		},
	},
	{
		name:    "NothingToRenewOrEnd",
		promise: "Renew, Release and Yield return ErrLost where there was never a lease",
		run: func(t *run) {
			l, _ := t.lessors()
			none := store.Lease{Key: t.key(), Token: store.NewToken(), Grant: 1}
			_, err := l.Renew(t.ctx, none, long)
			t.wantErr(err, store.ErrLost)
			t.wantErr(l.end(t.ctx, none), store.ErrLost)
		},
	},
	{
		name:    "GrantsAreNeverUsedAgain",
		promise: "a grant is new, and never equal to an earlier one of the key, also for a token that had the lease before",
		run: func(t *run) {
			l, other := t.lessors()
			req, seen := request(t.key(), long), map[uint64]bool{}
			for i := range 40 {
				client := []lessor{l, other}[i%2]
				lease := client.must(t, req)
				if seen[lease.Grant] {
					t.Fatalf("grant %d was given twice", lease.Grant)
				}
				seen[lease.Grant] = true
				t.ok(client.end(t.ctx, lease))
			}
		},
	},
	{
		name:    "RefusedLearnsTheHolder",
		promise: "who is refused is told which lease is in the way, its note, and for how long it still lives at most",
		run: func(t *run) {
			l, other := t.lessors()
			req := request(t.key(), long)
			req.Note = store.Note{
				Owner: "billing", Host: "web-3", PID: 4711, Reason: "monthly \"run\"\x00\n{é}",
				Since:  time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC),
				Expect: 3 * time.Second, AlertAfter: time.Minute, Stack: "main.main\n\tmain.go:1",
			}
			lease := l.must(t, req)
			_, err := other.take(t.ctx, request(req.Key, long))
			held := t.held(err)
			if held.Key != req.Key || held.Holder.Grant != lease.Grant {
				t.Errorf("the holder of grant %d is shown as %+v", lease.Grant, held)
			}
			if got, want := string(held.Holder.Note.Encode()), string(req.Note.Encode()); got != want {
				t.Errorf("the note\n%s\narrived as\n%s", want, got)
			}
			if left := held.Holder.Left; left < 0 || left > long+t.b.Facts.MinTTL {
				t.Errorf("%v are left of a time to live of %v", left, long)
			}
		},
	},
	{
		name:    "RequestsAreValidated",
		promise: "a request without token or with a time to live that is not positive is an error, and so is such a renewal",
		run: func(t *run) {
			l, _ := t.lessors()
			key := t.key()
			for _, req := range []store.Request{
				{Key: key, TTL: long},
				{Key: key, Token: store.NewToken()},
				{Key: key, Token: store.NewToken(), TTL: -time.Second},
			} {
				if lease, err := l.take(t.ctx, req); err == nil || errors.Is(err, store.ErrHeld) {
					t.Errorf("the request %+v got the lease %+v, error %v", req, lease, err)
				}
			}
			lease := l.must(t, request(key, long))
			if _, err := l.Renew(t.ctx, lease, 0); err == nil || errors.Is(err, store.ErrLost) {
				t.Errorf("Renew with a time to live of 0 returned error %v", err)
			}
			t.ok(l.end(t.ctx, lease))
		},
	},
	{
		name:    "Law12AnyKey",
		promise: "a key is any bytes, also none, and no key stands for another",
		run: func(t *run) {
			emptyKey.Lock()
			defer emptyKey.Unlock()
			l, other := t.lessors()
			keys := oddKeys()
			var leases []store.Lease
			for _, key := range keys {
				leases = append(leases, l.must(t, request(key, long)))
			}
			for i, key := range keys {
				_, err := other.take(t.ctx, request(key, long))
				if held := t.held(err); held.Holder.Grant != leases[i].Grant {
					t.Errorf("key %.40q has the grant %d of another", key, held.Holder.Grant)
				}
				t.ok(other.end(t.ctx, leases[i]))
			}
		},
	},
	{
		name:    "RenewAllAnswersEachLease",
		promise: "RenewAll renews each lease as Renew does; one that fails does not keep the others from being renewed",
		run:     renewAll,
	},
}

// oneGrantAmongMany lets clients of both stores ask for one key at once.
func oneGrantAmongMany(t *run) {
	t.Helper()
	l, other := t.lessors()
	const askers = 16
	var (
		key     = t.key()
		leases  [askers]store.Lease
		errs    [askers]error
		start   = make(chan struct{})
		clients sync.WaitGroup
	)
	for i := range askers {
		client := []lessor{l, other}[i%2]
		clients.Go(func() {
			<-start
			leases[i], errs[i] = client.take(t.ctx, request(key, long))
		})
	}
	close(start)
	clients.Wait()
	granted, grant := 0, uint64(0)
	for i, err := range errs {
		if err == nil {
			granted, grant = granted+1, leases[i].Grant
		}
	}
	if granted != 1 {
		t.Fatalf("%d of %d were granted the lease at once (errors: %v)", granted, askers, errs)
	}
	for _, err := range errs {
		if err != nil && t.held(err).Holder.Grant != grant {
			t.Fatalf("a refused one was told %v, the grant is %d", err, grant)
		}
	}
}

// impostors returns leases that resemble l.
func impostors(l store.Lease) []store.Lease {
	token, grant, both := l, l, l
	token.Token = store.NewToken()
	grant.Grant++
	both.Token, both.Grant = token.Token, grant.Grant
	none := l
	none.Grant = 0
	return []store.Lease{token, grant, both, none}
}

func renewAll(t *run) {
	l, other := t.lessors()
	var leases []store.Lease
	for range 5 {
		leases = append(leases, l.must(t, request(t.key(), long)))
	}
	t.ok(l.end(t.ctx, leases[1]))
	leases[3].Grant++
	renewed, errs := store.RenewAll(t.ctx, l.Renewer, leases, 2*long)
	if len(renewed) != len(leases) || len(errs) != len(leases) {
		t.Fatalf("%d leases, %d renewed, %d errors", len(leases), len(renewed), len(errs))
	}
	for i, lease := range leases {
		if i == 1 || i == 3 {
			t.wantErr(errs[i], store.ErrLost)
			continue
		}
		t.ok(errs[i])
		if renewed[i].Grant != lease.Grant || renewed[i].Key != lease.Key || !renewed[i].Expires.After(lease.Expires) {
			t.Errorf("%+v was renewed to %+v", lease, renewed[i])
		}
		t.ok(other.end(t.ctx, renewed[i]))
	}
	renewed, errs = store.RenewAll(t.ctx, l.Renewer, nil, long)
	if len(renewed) != 0 || len(errs) != 0 {
		t.Errorf("no leases were answered with %v and %v", renewed, errs)
	}
}
