package memstore

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/herdgate/herdgate/store"
)

// record is what the store keeps under one key.
type record struct {
	key string
	pos int // in the ring of its shard

	filled bool // there is an entry, and it ends at ends
	entry  store.Entry
	ends   time.Duration
	used   atomic.Bool // read since the store last looked for what to drop

	busy *busy // nil while nobody acts on the key
}

// busy is what goes on at a key. Most keys have an entry and nothing else.
type busy struct {
	lease   lease
	failure failure // left by the last lease; with a lease, what that one found
	queue   []place
	watches []*watch
}

// lease is the lease on a key; a zero grant means none.
type lease struct {
	token store.Token
	grant uint64
	ends  time.Duration
	note  store.Note
}

// failure is what the last lease left behind; no data means nothing.
type failure struct {
	data  []byte
	cools time.Duration // when claims are granted again
	ends  time.Duration // when it is forgotten
}

// place is a request waiting in the queue of a key.
type place struct {
	req   store.Request
	asked time.Duration // when it asked last
}

func (f failure) at(now time.Duration) store.Failure {
	if len(f.data) == 0 {
		return store.Failure{}
	}
	return store.Failure{Data: f.data, CoolDown: max(f.cools-now, 0), Memory: max(f.ends-now, 0)}
}

var (
	errTTL     = errors.New("memstore: the time to live must be positive")
	errVersion = errors.New("memstore: the version of an entry must not be zero: make one with store.NewToken")
)

// visit is one call's hold on the record of a key, from open to shut.
type visit struct {
	s    *Store
	sh   *shard
	r    *record
	sent time.Time // when the call began
	now  time.Duration
}

// open locks the shard of key and returns its record, made if there is none,
// with everything gone that is over. It must be followed by shut.
func (s *Store) open(key string) visit {
	v := visit{s: s, sh: s.shard(key), sent: time.Now()}
	v.sh.mu.Lock()
	v.now = s.now()
	v.r = v.sh.records[key]
	if v.r == nil {
		v.r = v.sh.add(key)
	}
	v.settle()
	return v
}

// shut ends what open began.
func (v *visit) shut() {
	kept := v.r
	v.sweep()
	v.sh.dropIfEmpty(kept)
	v.sh.mu.Unlock()
	v.s.trim(kept)
}

// settle removes what is over.
func (v *visit) settle() {
	if v.r.filled && v.r.ends <= v.now {
		v.unfill()
	}
	b := v.r.busy
	if b == nil {
		return
	}
	if b.lease.grant != 0 && b.lease.ends <= v.now {
		v.end(store.Event{})
	}
	if b.lease.grant == 0 && b.failure.ends <= v.now {
		b.failure = failure{}
	}
}

// busy returns what goes on at the key, to add to it.
func (v *visit) busy() *busy {
	if v.r.busy == nil {
		v.r.busy = &busy{}
	}
	return v.r.busy
}

// lease returns the live lease; its grant is zero if there is none.
func (v *visit) lease() lease {
	if v.r.busy == nil {
		return lease{}
	}
	return v.r.busy.lease
}

// holds reports whether l is the live lease.
func (v *visit) holds(l store.Lease) bool {
	live := v.lease()
	return live.grant != 0 && live.grant == l.Grant && live.token == l.Token
}

// grant puts a new lease on the key.
func (v *visit) grant(req store.Request, ttl time.Duration) store.Lease {
	v.busy().lease = lease{token: req.Token, grant: v.s.grants.Add(1), note: req.Note}
	return v.extend(req, ttl)
}

// extend starts the time to live of the live lease anew.
func (v *visit) extend(req store.Request, ttl time.Duration) store.Lease {
	live := &v.r.busy.lease
	live.ends = after(v.now, ttl)
	l := store.Lease{Key: req.Key, Token: live.token, Grant: live.grant, Expires: v.sent.Add(ttl)}
	if req.Fence {
		l.Fence = live.grant
	}
	return l
}

// end ends the lease, if any, hands the key to who has waited longest and
// tells who watches it.
func (v *visit) end(e store.Event) {
	b := v.r.busy
	if b == nil {
		return
	}
	e.Grant = b.lease.grant
	b.lease, b.failure = lease{}, failure{}
	for len(b.queue) > 0 && b.lease.grant == 0 {
		first := b.queue[0]
		b.queue = slices.Delete(b.queue, 0, 1)
		if v.now-first.asked <= store.QueueTTL { // else it was given up
			e.Lease = v.grant(first.req, min(first.req.TTL, store.QueueTTL))
		}
	}
	for _, w := range b.watches {
		w.tell(e)
	}
}

func (l lease) holder(now time.Duration) store.Holder {
	return store.Holder{Grant: l.grant, Note: l.note, Left: l.ends - now}
}

// fill makes e the entry of the key.
func (v *visit) fill(e store.Entry, ttl time.Duration) {
	v.unfill()
	v.r.filled, v.r.entry, v.r.ends = true, e, after(v.now, ttl)
	v.r.used.Store(false)
	v.s.entries.Add(1)
	v.s.bytes.Add(size(v.r.key, e.Value))
}

// unfill removes the entry, if any.
func (v *visit) unfill() {
	if !v.r.filled {
		return
	}
	v.s.entries.Add(-1)
	v.s.bytes.Add(-size(v.r.key, v.r.entry.Value))
	v.r.filled, v.r.entry = false, store.Entry{}
}
