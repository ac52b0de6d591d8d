package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// modelSteps is how many random calls a model case makes.
const modelSteps = 400

var cacheModelCases = []testCase{{
	name:    "ModelRandomCalls",
	promise: "whatever is called in whatever order, a store answers as memory does",
	run: func(t *run) {
		d := newDouble(t)
		c, _ := t.caches()
		d.real, d.model = player{cache: c}, player{cache: memstore.New(nil)}
		d.play(d.cacheStep)
	},
}}

var leaserModelCases = []testCase{{
	name:    "ModelRandomCalls",
	promise: "whatever is called in whatever order, a store answers as memory does",
	run: func(t *run) {
		d := newDouble(t)
		l, _ := t.leasers()
		d.real, d.model = player{leaser: l}, player{leaser: memstore.New(nil)}
		d.play(d.leaserStep)
	},
}}

// player is one of the two stores that are asked the same.
type player struct {
	cache  store.Cache
	leaser store.Leaser
}

// twin is one lease as both stores gave it.
type twin struct{ real, model store.Lease }

// double asks the store and the reference the same questions. They number
// their grants differently, so grants are compared by what they were given
// for.
type double struct {
	t           *run
	seed        uint64
	rng         *rand.Rand
	real, model player

	keys     []string
	twins    map[string][]twin            // by key, every lease there was
	versions map[string][]store.Token     // by key, every version there was
	grants   map[string]map[uint64]uint64 // by key, the reference's grant for that of the store
	failed   map[string]bool              // by key, whether a failure may be remembered
	log      []string
}

func newDouble(t *run) *double {
	seed := t.seed()
	d := &double{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)),
		keys:     []string{t.key(), t.key(), t.key()},
		twins:    map[string][]twin{},
		versions: map[string][]store.Token{},
		grants:   map[string]map[uint64]uint64{},
		failed:   map[string]bool{},
	}
	for _, key := range d.keys {
		d.grants[key] = map[uint64]uint64{}
	}
	return d
}

// play makes random steps and compares the answers.
func (d *double) play(step func(key string) (call, got, want string)) {
	d.t.Helper()
	for range modelSteps {
		call, got, want := step(d.keys[d.rng.IntN(len(d.keys))])
		d.log = append(d.log, call+" = "+want)
		if got != want {
			d.t.Fatalf("seed %d: after\n%s\nthe store answered %s", d.seed, strings.Join(d.log[max(0, len(d.log)-30):], "\n"), got)
		}
	}
}

// request makes a request with a new token, or repeats that of an earlier one.
func (d *double) request(key string) store.Request {
	req := request(key, long)
	if old := d.twins[key]; len(old) > 0 && d.rng.IntN(4) == 0 {
		req.Token = old[d.rng.IntN(len(old))].model.Token
	}
	return req
}

// lease picks the last lease on the key, mostly, or any earlier one.
func (d *double) lease(key string) twin {
	all := d.twins[key]
	switch {
	case len(all) == 0:
		none := store.Lease{Key: key, Token: store.NewToken(), Grant: 1}
		return twin{none, none}
	case d.rng.IntN(4) > 0:
		return all[len(all)-1]
	}
	return all[d.rng.IntN(len(all))]
}

// seen picks the version that a claim found wanting: the last, an earlier one
// or none.
func (d *double) seen(key string) store.Token {
	all := d.versions[key]
	switch n := d.rng.IntN(4); {
	case n == 0 || len(all) == 0:
		return store.Token{}
	case n == 1:
		return all[d.rng.IntN(len(all))]
	}
	return all[len(all)-1]
}

// granted notes a lease that both gave, and reports whether it is a new one. A
// token that has filled an entry serves no other attempt: what a late
// repetition of its claim is granted, nobody fills.
func (d *double) granted(key string, real, model store.Lease) bool {
	if _, known := d.grants[key][real.Grant]; known {
		return false
	}
	d.grants[key][real.Grant] = model.Grant
	if !slices.Contains(d.versions[key], model.Token) {
		d.twins[key] = append(d.twins[key], twin{real, model})
	}
	return true
}

func (d *double) leaserStep(key string) (call, got, want string) {
	tw := d.lease(key)
	switch n := d.rng.IntN(10); {
	case n < 4:
		req := d.request(key)
		rl, rerr := d.real.leaser.Acquire(d.t.ctx, req)
		ml, merr := d.model.leaser.Acquire(d.t.ctx, req)
		if rerr == nil && merr == nil {
			d.granted(key, rl, ml)
		}
		return d.call("Acquire", key, req.Token), d.leased(key, rl, rerr, true), d.leased(key, ml, merr, false)
	case n < 6:
		_, rerr := d.real.leaser.Renew(d.t.ctx, tw.real, long)
		_, merr := d.model.leaser.Renew(d.t.ctx, tw.model, long)
		return d.call("Renew", key, tw.model.Token), outcome(rerr), outcome(merr)
	case n < 9 || !d.t.b.Breaks:
		rerr, merr := d.real.leaser.Release(d.t.ctx, tw.real), d.model.leaser.Release(d.t.ctx, tw.model)
		return d.call("Release", key, tw.model.Token), outcome(rerr), outcome(merr)
	}
	rh, rerr := as[store.Breaker](d.t, d.real.leaser).Break(d.t.ctx, key)
	mh, merr := as[store.Breaker](d.t, d.model.leaser).Break(d.t.ctx, key)
	return d.call("Break", key, store.Token{}),
		fmt.Sprint(d.grant(key, rh.Grant, true), outcome(rerr)), fmt.Sprint(mh.Grant, outcome(merr))
}

func (d *double) cacheStep(key string) (call, got, want string) {
	tw := d.lease(key)
	switch n := d.rng.IntN(20); {
	case n < 4:
		re, rerr := d.real.cache.Get(d.t.ctx, key)
		me, merr := d.model.cache.Get(d.t.ctx, key)
		return d.call("Get", key, store.Token{}), entered(re, rerr), entered(me, merr)
	case n < 10:
		return d.claimStep(key)
	case n < 14:
		value := fmt.Append(nil, "value ", d.rng.IntN(1000))
		rerr := d.real.cache.Fill(d.t.ctx, tw.real, value, long)
		merr := d.model.cache.Fill(d.t.ctx, tw.model, value, long)
		if merr == nil && !slices.Contains(d.versions[key], tw.model.Token) {
			d.versions[key], d.failed[key] = append(d.versions[key], tw.model.Token), false
		}
		return d.call("Fill", key, tw.model.Token), outcome(rerr), outcome(merr)
	case n < 16:
		f := d.failure()
		rerr, merr := d.real.cache.Yield(d.t.ctx, tw.real, f), d.model.cache.Yield(d.t.ctx, tw.model, f)
		d.failed[key] = d.failed[key] || (merr == nil && len(f.Data) > 0)
		return d.call(fmt.Sprintf("Yield %q %v", f.Data, f.CoolDown), key, tw.model.Token), outcome(rerr), outcome(merr)
	case n < 17:
		_, rerr := d.real.cache.Renew(d.t.ctx, tw.real, long)
		_, merr := d.model.cache.Renew(d.t.ctx, tw.model, long)
		return d.call("Renew", key, tw.model.Token), outcome(rerr), outcome(merr)
	case n < 18:
		d.failed[key] = false
		rerr, merr := d.real.cache.Delete(d.t.ctx, key), d.model.cache.Delete(d.t.ctx, key)
		return d.call("Delete", key, store.Token{}), outcome(rerr), outcome(merr)
	case n < 19 && d.t.b.Expires && !d.failed[key]: // what becomes of a failure is not said
		rerr, merr := store.Expire(d.t.ctx, d.real.cache, key), store.Expire(d.t.ctx, d.model.cache, key)
		return d.call("Expire", key, store.Token{}), outcome(rerr), outcome(merr)
	}
	version, value := store.NewToken(), []byte("put")
	rerr := store.Put(d.t.ctx, d.real.cache, key, version, value, long)
	merr := store.Put(d.t.ctx, d.model.cache, key, version, value, long)
	d.versions[key], d.failed[key] = append(d.versions[key], version), false
	return d.call("Put", key, version), outcome(rerr), outcome(merr)
}

func (d *double) claimStep(key string) (call, got, want string) {
	req := d.request(key)
	if req.Seen = d.seen(key); req.Seen == req.Token {
		req.Token = store.NewToken() // nobody finds its own load wanting by the same attempt
	}
	ra, rerr := d.real.cache.Claim(d.t.ctx, req)
	ma, merr := d.model.cache.Claim(d.t.ctx, req)
	if ra.State == store.Granted && ma.State == store.Granted && !d.granted(key, ra.Lease, ma.Lease) {
		ra.Failure, ma.Failure = store.Failure{}, store.Failure{} // only a new grant is told
	}
	call = d.call("Claim seen "+name(req.Seen), key, req.Token)
	return call, d.answer(key, ra, rerr, true), d.answer(key, ma, merr, false)
}

func (d *double) failure() store.Failure {
	data := fmt.Append(nil, "failure ", d.rng.IntN(1000))
	return []store.Failure{
		{},
		{Data: data, CoolDown: long, Memory: 2 * long},
		{Data: data, CoolDown: 0, Memory: long},
	}[d.rng.IntN(3)]
}

// seed returns the seed of the random cases.
func (t *run) seed() uint64 {
	if t.b.Seed != 0 {
		return t.b.Seed
	}
	return uint64(time.Now().UnixNano()) ^ rand.Uint64()
}
