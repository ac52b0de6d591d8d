package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	plainGet = "go-redis GET"
	figHits  = "hits"
	figHit   = "time per hit"
	figAlloc = "allocations per hit"
)

// hotHits: a fresh key in Redis is read as fast as possible.
var hotHits = scenario{
	Name:       "hits",
	About:      "64 callers of one process read one fresh key, without a near cache",
	Contenders: []string{herdgate, plainGet, rueidisAside, goRedisCache},
	Run:        runHits,
	AlwaysAll:  true,
	Targets: []target{{
		Figure: figHits, Reach: "≥ plain GET in the same run", Limit: figureOf(plainGet, figHits, 0), Least: true,
	}},
}

// nearHits: a fresh key is in the process.
var nearHits = scenario{
	Name:       "near-hits",
	About:      "one caller per processor reads one fresh key from the near cache",
	Contenders: []string{herdgate, otterAlone},
	Run:        runNearHits,
	AlwaysAll:  true,
	Targets: []target{
		atMost(figHit, 60, "≤ 60 ns"),
		{Figure: figAlloc, Reach: "no allocation of ours", Limit: figureOf(otterAlone, figAlloc, 0)},
	},
}

// HitSpec says how fresh keys are read.
type HitSpec struct {
	Key     string
	Callers int
	For     time.Duration
	Bare    bool // only the near cache's own call, without what a Contender adds
}

// Hits is what reading fresh keys came to.
type Hits struct {
	Reads  int64
	Took   time.Duration
	Allocs uint64
	Err    string
}

const hitRounds = 5

func runHits(b *bench, contender string) (*result, error) {
	setup := Setup{Contender: contender, Redis: b.addr}
	rounds, err := b.hitRounds(setup, HitSpec{Callers: 64, For: pick(b, time.Second, 300*time.Millisecond)})
	if err != nil {
		return nil, err
	}
	r := &result{Contender: contender}
	var rates []float64
	for _, h := range rounds {
		rates = append(rates, float64(h.Reads)/h.Took.Seconds())
		r.check(lawHit(h))
	}
	r.add(figHits, perSecond, median(rates))
	return r, nil
}

func runNearHits(b *bench, contender string) (*result, error) {
	setup := Setup{Contender: contender, Redis: b.addr, Tuning: Tuning{NearTTL: defaultTTL / 2}}
	rounds, err := b.hitRounds(setup, HitSpec{Bare: true, For: pick(b, time.Second, 300*time.Millisecond)})
	if err != nil {
		return nil, err
	}
	r := &result{Contender: contender}
	var times, allocs []float64
	for _, h := range rounds {
		times = append(times, float64(h.Took.Nanoseconds())/float64(h.Reads))
		allocs = append(allocs, float64(h.Allocs)/float64(h.Reads))
		r.check(lawHit(h))
	}
	r.add(figHit, nanos, median(times))
	r.add(figAlloc, ratio, median(allocs))
	return r, nil
}

// lawHit: reading a fresh value is no error.
func lawHit(h Hits) []violation {
	if h.Err == "" {
		return nil
	}
	return broken(1, "reading a fresh key: %s", h.Err)
}

// hitRounds measures some times in one process.
func (b *bench) hitRounds(setup Setup, spec HitSpec) ([]Hits, error) {
	f, err := startFleet(b.ctx, 1, setup)
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	spec.Key = b.key("hit")
	rounds := make([]Hits, hitRounds)
	for i := range rounds {
		b.progress.step("%d of %d", i+1, hitRounds)
		if err := f.servers[0].call(b.ctx, "Hits", spec, &rounds[i]); err != nil {
			return nil, err
		}
	}
	return rounds, nil
}

// barely is a contender that can be read without what the interface costs.
type barely interface {
	hit(ctx context.Context, key string, load Loader) error
}

// Hits reads a fresh key for some time.
func (w *worker) Hits(spec HitSpec, out *Hits) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	load := func(context.Context) ([]byte, error) { return encodeValue(1, 1, headerSize), nil }
	read := func() error {
		_, _, err := w.contender.Get(ctx, spec.Key, load)
		return err
	}
	if bare, ok := w.contender.(barely); ok && spec.Bare {
		read = func() error { return bare.hit(ctx, spec.Key, load) }
	}
	if err := read(); err != nil { // fills it
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	out.Reads, out.Err = readAll(or(spec.Callers, runtime.GOMAXPROCS(0)), start.Add(spec.For), read)
	out.Took = time.Since(start)
	runtime.ReadMemStats(&after)
	out.Allocs = after.Mallocs - before.Mallocs
	return nil
}

// readAll lets some callers read until the end, and counts.
func readAll(callers int, end time.Time, read func() error) (reads int64, failed string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			n, err := readUntil(end, read)
			mu.Lock()
			defer mu.Unlock()
			reads += n
			if err != nil {
				failed = err.Error()
			}
		})
	}
	wg.Wait()
	return reads, failed
}

// readUntil looks at the clock only now and then: it costs as much as a hit.
func readUntil(end time.Time, read func() error) (n int64, err error) {
	const batch = 64
	for time.Now().Before(end) {
		for range batch {
			if err := read(); err != nil {
				return n, err
			}
		}
		n += batch
	}
	return n, nil
}
