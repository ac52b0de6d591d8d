package storetest

import (
	"errors"
	"math/rand/v2"

	"github.com/anishathalye/porcupine"

	"github.com/herdgate/herdgate/store"
)

var cacheLinearCases = []testCase{{
	name:    "Law2Linearizable",
	promise: "whatever clients do at once, and whatever replies are lost, the answers are those of one entry and one lease in one order",
	run: func(t *run) {
		first, other := t.caches()
		t.histories(cacheModel, func(h *history, rng *rand.Rand, key string, id int) func() {
			c := &cacheClient{t: t, h: h, rng: rng, key: key, id: id}
			c.c = FaultyCache([]store.Cache{first, other}[id%2], lossy(rand.New(rand.NewPCG(rng.Uint64(), 0))))
			return c.next
		})
	},
}}

// cacheState is what a Cache knows of one key.
type cacheState struct {
	version store.Token // of the entry, zero if there is none
	failed  bool
	lease   leaserState
}

// cacheModel is the contract of Cache as porcupine reads it.
var cacheModel = porcupine.Model{
	Init: func() any { return cacheState{} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := state.(cacheState).step(in.(input), out.(output))
		return ok, next
	},
}

func (s cacheState) step(in input, out output) (bool, cacheState) {
	switch in.name {
	case "get":
		return out.unknown() || out.version == s.version, s
	case "claim":
		return s.claim(in, out)
	case "delete":
		return true, cacheState{}
	case "fill":
		filled := cacheState{version: in.token}
		repeated := s.version == in.token
		return s.end(in, out, filled, repeated)
	}
	return s.end(in, out, cacheState{version: s.version, failed: in.fails}, false) // yield
}

// end is the step of a call that ends the lease and leaves the state next. A
// repeated one succeeds without doing anything.
func (s cacheState) end(in input, out output, next cacheState, repeated bool) (bool, cacheState) {
	live := s.lease.is(in.token, in.grant)
	switch {
	case out.name == "lost":
		return !repeated && s.lease.isNot(in.token, in.grant), s
	case live:
		return true, next
	}
	return out.unknown() || repeated, s
}

func (s cacheState) claim(in input, out output) (bool, cacheState) {
	switch {
	case !s.version.IsZero() && s.version != in.seen:
		return out.unknown() || (out.name == "found" && out.version == s.version), s
	case s.lease.token.IsZero() && s.failed:
		return out.unknown() || out.name == "failed", s
	case !out.unknown() && out.name != "granted" && out.name != "held":
		return false, s
	}
	free := s.lease.token.IsZero()
	ok, lease := s.lease.take(in.token, out)
	return ok, cacheState{version: s.version, failed: s.failed && !free, lease: lease}
}

// cacheClient reads, claims, fills, yields and deletes.
type cacheClient struct {
	t   *run
	h   *history
	c   store.Cache
	rng *rand.Rand
	key string
	id  int

	req   store.Request // being asked for, with a zero token if none is
	last  store.Request // that got the lease, until it is filled
	lease store.Lease   // the last one granted
	holds bool          // by all it knows
	seen  store.Token   // the last version it saw
}

func (c *cacheClient) next() {
	switch n := c.rng.IntN(20); {
	case n < 2:
		c.delete()
	case n < 5:
		c.get()
	case c.holds && n < 8 && !c.last.Token.IsZero():
		c.req = c.last // again
		c.claim()
	case c.holds && n < 15, c.lease.Grant != 0 && n < 7:
		c.fill()
	case c.holds:
		c.yield()
	default:
		c.claim()
	}
}

func (c *cacheClient) get() {
	c.h.call(c.id, input{name: "get"}, func() output {
		e, err := c.c.Get(c.t.ctx, c.key)
		if err != nil && !errors.Is(err, store.ErrMiss) {
			return output{name: "unknown"}
		}
		c.seen = e.Version
		return output{name: "got", version: e.Version}
	})
}

// claim asks with a new token, or again with the one whose reply was lost.
func (c *cacheClient) claim() {
	if c.req.Token.IsZero() {
		c.req = request(c.key, long)
		c.req.Seen = c.seen
	}
	out := c.h.call(c.id, input{name: "claim", token: c.req.Token, seen: c.req.Seen}, func() output {
		a, err := c.c.Claim(c.t.ctx, c.req)
		switch {
		case err != nil:
			return output{name: "unknown"}
		case a.State == store.Granted:
			c.last, c.lease, c.holds = c.req, a.Lease, true
			return output{name: "granted", grant: a.Lease.Grant}
		case a.State == store.Found:
			c.seen = a.Entry.Version
		}
		return output{name: a.State.String(), grant: a.Holder.Grant, version: a.Entry.Version}
	})
	if !out.unknown() {
		c.req = store.Request{}
	}
}

// fill sends a token as a version. No claim repeats it after that: a version
// must not come back.
func (c *cacheClient) fill() {
	if c.last = (store.Request{}); c.req.Token == c.lease.Token {
		c.req = store.Request{}
	}
	out := c.h.call(c.id, c.about("fill"), func() output {
		return ended(c.c.Fill(c.t.ctx, c.lease, []byte("value"), long))
	})
	c.holds = c.holds && out.unknown()
}

func (c *cacheClient) yield() {
	in, f := c.about("yield"), store.Failure{}
	if in.fails = c.rng.IntN(3) == 0; in.fails {
		f = store.Failure{Data: []byte("boom"), CoolDown: long, Memory: long}
	}
	out := c.h.call(c.id, in, func() output { return ended(c.c.Yield(c.t.ctx, c.lease, f)) })
	c.holds = c.holds && out.unknown()
}

func (c *cacheClient) delete() {
	c.h.call(c.id, input{name: "delete"}, func() output { return ended(c.c.Delete(c.t.ctx, c.key)) })
}

// about is a call that concerns the client's lease.
func (c *cacheClient) about(name string) input {
	return input{name: name, token: c.lease.Token, grant: c.lease.Grant}
}
