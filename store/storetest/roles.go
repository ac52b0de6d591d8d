package storetest

import "github.com/herdgate/herdgate/store"

// bothRoleCases are about a store that is a Cache and a Leaser.
var bothRoleCases = []testCase{
	{
		name:    "Law1OneLeaseForBothRoles",
		promise: "a store that is a Cache and a Leaser has one lease per key: who asks in one role is refused while another holds it in the other",
		needs:   bothRoles,
		run: func(t *run) {
			c, l := t.bothRoles()
			if l == nil {
				return
			}
			load := t.granted(c, t.key(), store.Token{})
			_, err := l.Acquire(t.ctx, request(load.Key, long))
			if held := t.held(err); held.Holder.Grant != load.Grant {
				t.Errorf("the holder has the grant %d, refused by %d", load.Grant, held.Holder.Grant)
			}
			t.ok(c.Yield(t.ctx, load, store.Failure{}))
			lease, err := l.Acquire(t.ctx, request(load.Key, long))
			t.ok(err)
			if holder := t.claim(c, request(load.Key, long), store.Held).Holder; holder.Grant != lease.Grant {
				t.Errorf("the holder has the grant %d, refused by %d", lease.Grant, holder.Grant)
			}
			t.ok(l.Release(t.ctx, lease))
			t.granted(c, load.Key, store.Token{})
		},
	},
	{
		name:    "Law1OneLeaseBesideAnEntry",
		promise: "of a lease to refresh an entry and one of Acquire at most one is live",
		needs:   bothRoles,
		run: func(t *run) {
			c, l := t.bothRoles()
			if l == nil {
				return
			}
			old := t.load(c, t.key(), "old")
			refresh := t.granted(c, old.Key, old.Token)
			if _, err := l.Acquire(t.ctx, request(old.Key, long)); err == nil {
				t.fillLost(c, refresh)
			} else {
				t.held(err)
				t.ok(c.Fill(t.ctx, refresh, []byte("new"), long))
			}
		},
	},
}

func bothRoles(b *Backend) bool { return b.Cache != nil && b.Leaser != nil }

// bothRoles returns one client as a Cache and the other as a Leaser, nil if
// those are different stores.
func (t *run) bothRoles() (store.Cache, store.Leaser) {
	t.Helper()
	c, other := t.caches()
	l, _ := store.As[store.Leaser](other)
	return c, l
}
