package storetest

import (
	"errors"
	"time"

	"github.com/herdgate/herdgate/store"
)

// lifetimeCases are about the time to live of the leases of both roles.
var lifetimeCases = []testCase{
	{
		name:    "AskingAgainRestartsTimeToLive",
		promise: "asked again with the token of the live lease, the store starts the time to live anew",
		run: func(t *run) {
			staysBeyond(t, func(l lessor, lease store.Lease) (store.Lease, error) {
				again, err := l.take(t.ctx, store.Request{Key: lease.Key, Token: lease.Token, TTL: long})
				if err == nil && again.Grant != lease.Grant {
					return again, store.ErrLost // it had expired: a new lease
				}
				return again, err
			})
		},
	},
	{
		name:    "RenewRestartsTimeToLive",
		promise: "Renew starts the lease's time to live anew and returns the lease with its new Expires",
		run: func(t *run) {
			staysBeyond(t, func(l lessor, lease store.Lease) (store.Lease, error) {
				return l.Renew(t.ctx, lease, long)
			})
		},
	},
	{
		name:    "Law8NobodyElseBeforeExpires",
		promise: "a lease ends by itself, and not before the Expires that its holder was told",
		run: func(t *run) {
			l, other := t.lessors()
			lease := l.must(t, request(t.key(), t.short()))
			next, granted := other.untilGranted(t, lease.Key)
			if granted.Before(lease.Expires) {
				t.Errorf("another got the lease %v before it expired", lease.Expires.Sub(granted))
			}
			if next.Grant == lease.Grant {
				t.Errorf("two leases share the grant %d", lease.Grant)
			}
			_, err := l.Renew(t.ctx, lease, long)
			t.wantErr(err, store.ErrLost)
			t.wantErr(l.end(t.ctx, lease), store.ErrLost)
			t.ok(other.end(t.ctx, next))
		},
	},
	{
		name:    "Law8ExpiredLeaseIsLost",
		promise: "Renew, Release and Yield return ErrLost once the lease expired, also when nobody took it",
		run: func(t *run) {
			l, _ := t.lessors()
			renewed, ended := l.must(t, request(t.key(), t.short())), l.must(t, request(t.key(), t.short()))
			time.Sleep(t.over(t.short()))
			_, err := l.Renew(t.ctx, renewed, long)
			t.wantErr(err, store.ErrLost)
			t.wantErr(l.end(t.ctx, ended), store.ErrLost)
		},
	},
	{
		name:    "Law8ExpiresCountsFromTheRequest",
		promise: "Expires is counted from before the request was sent, by the holder's clock, and is no later than the time to live allows",
		run: func(t *run) {
			l, _ := t.lessors()
			req := request(t.key(), long)
			check := func(lease store.Lease, before time.Time) {
				t.Helper()
				latest := time.Now().Add(long + t.b.Facts.MinTTL)
				if !lease.Expires.After(before) || lease.Expires.After(latest) {
					t.Errorf("Expires is %v after the call began, with a time to live of %v", lease.Expires.Sub(before), long)
				}
			}
			before := time.Now()
			lease := l.must(t, req)
			check(lease, before)
			before = time.Now()
			lease, err := l.Renew(t.ctx, lease, long)
			t.ok(err)
			check(lease, before)
		},
	},
	{
		name:    "TinyTimesToLive",
		promise: "a store rounds a time to live up to what its server can count: the shortest is no error and ends soon",
		run: func(t *run) {
			l, other := t.lessors()
			req := request(t.key(), time.Nanosecond)
			l.must(t, req)
			other.untilGranted(t, req.Key)
		},
	},
	{
		name:    "HugeTimesToLive",
		promise: "a time to live of years is no less than one of minutes",
		run: func(t *run) {
			l, other := t.lessors()
			for _, ttl := range hugeTTLs {
				lease := l.must(t, request(t.key(), ttl))
				time.Sleep(pause)
				lease, err := l.Renew(t.ctx, lease, ttl)
				t.ok(err)
				if left := time.Until(lease.Expires); left < time.Hour {
					t.Errorf("of a time to live of %v are left %v", ttl, left)
				}
				_, err = other.take(t.ctx, request(lease.Key, long))
				t.held(err)
				t.ok(other.end(t.ctx, lease))
			}
		},
	},
}

// hugeTTLs are beyond what memcached takes for a relative time, beyond what
// fits into 32 bits as seconds, and the longest of all, to which nothing can be
// added.
var hugeTTLs = []time.Duration{31 * 24 * time.Hour, 150 * 365 * 24 * time.Hour, 1<<63 - 1}

// staysBeyond takes a short lease, lengthens it, and checks that it lives on
// when its first time to live is over.
func staysBeyond(t *run, lengthen func(lessor, store.Lease) (store.Lease, error)) {
	t.Helper()
	l, other := t.lessors()
	t.inTime(func(ttl time.Duration) bool {
		short := l.must(t, request(t.key(), ttl))
		lease, err := lengthen(l, short)
		if errors.Is(err, store.ErrLost) && time.Now().After(short.Expires) {
			return false
		}
		t.ok(err)
		if !lease.Expires.After(short.Expires) {
			t.Errorf("Expires moved by %v", lease.Expires.Sub(short.Expires))
		}
		time.Sleep(t.over(ttl))
		_, err = other.take(t.ctx, request(lease.Key, long))
		t.held(err)
		t.ok(l.end(t.ctx, lease))
		return true
	})
}
