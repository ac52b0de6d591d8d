package storetest

import (
	"math/rand/v2"

	"github.com/anishathalye/porcupine"

	"github.com/herdgate/herdgate/store"
)

var leaserLinearCases = []testCase{{
	name:    "Law1Linearizable",
	promise: "whatever clients do at once, and whatever replies are lost, the answers are those of one lease in one order",
	run: func(t *run) {
		l, other := t.leasers()
		t.histories(leaserModel, func(h *history, rng *rand.Rand, key string, id int) func() {
			c := &leaserClient{t: t, h: h, rng: rng, key: key, id: id}
			c.l = FaultyLeaser([]store.Leaser{l, other}[id%2], lossy(rand.New(rand.NewPCG(rng.Uint64(), 0))))
			return c.next
		})
	},
}}

// leaserState is what a Leaser knows of one key: the live lease, if any. Its
// grant is zero while no answer has told it.
type leaserState struct {
	token store.Token
	grant uint64
}

// is reports whether the live lease may be that of token and grant.
func (s leaserState) is(token store.Token, grant uint64) bool {
	return s.token == token && !token.IsZero() && (s.grant == grant || s.grant == 0)
}

// isNot reports whether the live lease may be another than that of token and
// grant.
func (s leaserState) isNot(token store.Token, grant uint64) bool {
	return s.token != token || s.grant != grant
}

// leaserModel is the contract of Leaser as porcupine reads it.
var leaserModel = porcupine.Model{
	Init: func() any { return leaserState{} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := state.(leaserState).step(in.(input), out.(output))
		return ok, next
	},
}

func (s leaserState) step(in input, out output) (bool, leaserState) {
	switch in.name {
	case "acquire":
		return s.take(in.token, out)
	case "renew":
		if out.name == "ok" {
			return s.is(in.token, in.grant), leaserState{in.token, in.grant}
		}
		return out.unknown() || s.isNot(in.token, in.grant), s
	}
	switch out.name { // release
	case "ok":
		return s.is(in.token, in.grant), leaserState{}
	case "lost":
		return s.isNot(in.token, in.grant), s
	}
	if s.is(in.token, in.grant) {
		return true, leaserState{}
	}
	return true, s
}

// take is the step of a request for the lease.
func (s leaserState) take(token store.Token, out output) (bool, leaserState) {
	free, own := s.token.IsZero(), s.token == token
	switch {
	case out.unknown() && free:
		return true, leaserState{token: token}
	case out.unknown():
		return true, s
	case out.name == "granted":
		return free || (own && s.is(token, out.grant)), leaserState{token, out.grant}
	}
	return !free && !own && s.is(s.token, out.grant), leaserState{s.token, out.grant}
}

// leaserClient acquires, renews and releases, mostly in this order.
type leaserClient struct {
	t   *run
	h   *history
	l   store.Leaser
	rng *rand.Rand
	key string
	id  int

	req   store.Request // being asked for, with a zero token if none is
	lease store.Lease   // held by all it knows, or the last one
	holds bool
}

func (c *leaserClient) next() {
	switch {
	case !c.holds && c.lease.Grant != 0 && c.rng.IntN(6) == 0:
		c.renew() // too late
	case !c.holds && c.lease.Grant != 0 && c.rng.IntN(6) == 0:
		c.release() // a second time
	case !c.holds:
		c.acquire()
	case c.rng.IntN(4) == 0:
		c.acquireAgain()
	case c.rng.IntN(2) == 0:
		c.renew()
	default:
		c.release()
	}
}

// acquire asks with a new token, or again with the one whose reply was lost.
func (c *leaserClient) acquire() {
	if c.req.Token.IsZero() {
		c.req = request(c.key, long)
	}
	out := c.ask(c.req)
	if !out.unknown() {
		c.req = store.Request{}
	}
}

func (c *leaserClient) acquireAgain() {
	c.ask(store.Request{Key: c.key, Token: c.lease.Token, TTL: long})
}

func (c *leaserClient) ask(req store.Request) output {
	return c.h.call(c.id, input{name: "acquire", token: req.Token}, func() output {
		l, err := c.l.Acquire(c.t.ctx, req)
		if err == nil {
			c.lease, c.holds = l, true
		}
		return leased(l, err)
	})
}

func (c *leaserClient) renew() {
	c.h.call(c.id, input{name: "renew", token: c.lease.Token, grant: c.lease.Grant}, func() output {
		_, err := c.l.Renew(c.t.ctx, c.lease, long)
		return ended(err)
	})
}

func (c *leaserClient) release() {
	out := c.h.call(c.id, input{name: "release", token: c.lease.Token, grant: c.lease.Grant}, func() output {
		return ended(c.l.Release(c.t.ctx, c.lease))
	})
	c.holds = c.holds && out.unknown()
}
