package storetest

import (
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// leaserCases are about what only leases for people have: fences and force.
var leaserCases = []testCase{
	{
		name:    "FencesGrow",
		promise: "a fence grows with every new lease on a key: over release, expiry and force",
		needs:   fences,
		run:     fencesGrow,
	},
	{
		name:    "FencesStandStill",
		promise: "asking again and renewing do not move the fence",
		needs:   fences,
		run: func(t *run) {
			l, other := t.leasers()
			req := fenced(t.key(), long)
			lease, err := l.Acquire(t.ctx, req)
			t.ok(err)
			again, err := other.Acquire(t.ctx, req)
			t.ok(err)
			renewed, err := l.Renew(t.ctx, lease, long)
			t.ok(err)
			if lease.Fence == 0 || again.Fence != lease.Fence || renewed.Fence != lease.Fence {
				t.Errorf("fence %d became %d when asked again, %d when renewed", lease.Fence, again.Fence, renewed.Fence)
			}
		},
	},
	{
		name:    "Law13NoFenceInSilence",
		promise: "a store that cannot give the fence that is asked for says errors.ErrUnsupported and grants nothing",
		needs:   func(b *Backend) bool { return !b.Facts.Fences },
		run: func(t *run) {
			l, other := t.leasers()
			req := fenced(t.key(), long)
			_, err := l.Acquire(t.ctx, req)
			t.wantErr(err, errors.ErrUnsupported)
			lease, err := other.Acquire(t.ctx, request(req.Key, long))
			t.ok(err)
			if lease.Fence != 0 {
				t.Errorf("a store without fences gave the fence %d", lease.Fence)
			}
		},
	},
	{
		name:    "Law12AnyKeyIsReleased",
		promise: "a key is any bytes, also none: it is held, and free when released",
		run: func(t *run) {
			emptyKey.Lock()
			defer emptyKey.Unlock()
			l, other := t.leasers()
			for _, key := range oddKeys() {
				lease, err := l.Acquire(t.ctx, request(key, long))
				t.ok(err)
				_, err = other.Acquire(t.ctx, request(key, long))
				t.held(err)
				t.ok(other.Release(t.ctx, lease))
				lease, err = l.Acquire(t.ctx, request(key, long))
				t.ok(err)
				t.ok(other.Release(t.ctx, lease))
			}
		},
	},
	{
		name:    "Law11ReplyLost",
		promise: "a request whose reply was lost can be repeated: the lease is neither lost nor granted twice",
		run: func(t *run) {
			inner, other := t.leasers()
			lost := false
			l := FaultyLeaser(inner, func(op Op) Fault {
				if lost || op.Name != "Acquire" {
					return Fault{}
				}
				lost = true
				return Fault{Applied: true, Err: ErrFault}
			})
			req := request(t.key(), long)
			_, err := l.Acquire(t.ctx, req)
			t.wantErr(err, ErrFault)
			_, err = other.Acquire(t.ctx, request(req.Key, long))
			grant := t.held(err).Holder.Grant
			lease, err := l.Acquire(t.ctx, req)
			t.ok(err)
			if lease.Grant != grant {
				t.Errorf("grant %d became %d when asked again", grant, lease.Grant)
			}
		},
	},
	{
		name:    "BreakEndsTheLease",
		promise: "Break ends the lease on a key, whoever has it, and returns who had it",
		needs:   breaks,
		run: func(t *run) {
			l, other := t.leasers()
			req := request(t.key(), long)
			req.Note.Owner = "the one"
			lease, err := l.Acquire(t.ctx, req)
			t.ok(err)
			had, err := as[store.Breaker](t, other).Break(t.ctx, req.Key)
			t.ok(err)
			if had.Grant != lease.Grant || had.Note.Owner != "the one" {
				t.Errorf("Break of grant %d returned %+v", lease.Grant, had)
			}
			t.wantErr(l.Release(t.ctx, lease), store.ErrLost)
			_, err = other.Acquire(t.ctx, request(req.Key, long))
			t.ok(err)
		},
	},
	{
		name:    "BreakOfNothing",
		promise: "Break returns a zero Holder if there was no lease",
		needs:   breaks,
		run: func(t *run) {
			l, other := t.leasers()
			lease, err := l.Acquire(t.ctx, request(t.key(), long))
			t.ok(err)
			t.ok(l.Release(t.ctx, lease))
			for _, key := range []string{t.key(), lease.Key} {
				had, err := as[store.Breaker](t, other).Break(t.ctx, key)
				t.ok(err)
				if had != (store.Holder{}) {
					t.Errorf("Break of nothing returned %+v", had)
				}
			}
		},
	},
}

func fenced(key string, ttl time.Duration) store.Request {
	req := request(key, ttl)
	req.Fence = true
	return req
}

func fencesGrow(t *run) {
	l, other := t.leasers()
	key, last := t.key(), uint64(0)
	acquire := func(l store.Leaser, ttl time.Duration) store.Lease {
		t.Helper()
		var lease store.Lease
		t.eventually("the lease is granted", func() bool {
			var err error
			lease, err = l.Acquire(t.ctx, fenced(key, ttl))
			if err != nil {
				t.held(err)
			}
			return err == nil
		})
		if lease.Fence <= last {
			t.Fatalf("after fence %d came %d", last, lease.Fence)
		}
		last = lease.Fence
		return lease
	}
	for range 10 {
		t.ok(other.Release(t.ctx, acquire(l, long)))
		t.ok(l.Release(t.ctx, acquire(other, long)))
	}
	acquire(l, t.short())
	acquire(other, t.short())
	lease := acquire(l, long)
	if t.b.Breaks {
		_, err := as[store.Breaker](t, other).Break(t.ctx, key)
		t.ok(err)
		lease = acquire(other, long)
	}
	t.ok(l.Release(t.ctx, lease))
	acquire(other, long)
}
