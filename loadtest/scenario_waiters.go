package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	figWakeP50 = "p50 wake"
	figWakeP99 = "p99 wake"
	figHeap    = "heap per waiter"
	figStack   = "stack per waiter"
)

// manyWaiters: very many callers of one process wait for one load.
var manyWaiters = scenario{
	Name:       "waiters",
	About:      "10,000 callers of one process wait for one load; the time from its end until they have the value",
	Contenders: []string{herdgate, singleFlight, otterAlone},
	Run:        runWaiters,
	AlwaysAll:  true,
	Targets: []target{
		atMost(figWakeP99, 8, "≤ 8 ms"),
		atMost(figHeap, 250, "≤ 250 B"),
	},
}

// WaitSpec says how many callers wait.
type WaitSpec struct {
	Key     string
	Waiters int
}

// Waits is what waiting came to.
type Waits struct {
	Wakes       []time.Duration // from the end of the load, ascending
	Heap, Stack float64         // bytes per waiter, beyond a goroutine that waits for nothing but a channel
	Loads       int
	Disturbed   int
	Err         string
}

func runWaiters(b *bench, contender string) (*result, error) {
	f, err := startFleet(b.ctx, 1, Setup{Contender: contender, Redis: b.addr})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	rounds := pick(b, 7, 4)
	var p50, p99, heap, stack []float64
	r := &result{Contender: contender}
	for i := range rounds {
		b.progress.step("%d of %d", i+1, rounds)
		var w Waits
		spec := WaitSpec{Key: b.key("waiters"), Waiters: 10_000}
		if err := f.servers[0].call(b.ctx, "Waits", spec, &w); err != nil {
			return nil, err
		}
		r.checkCounts(w.Disturbed, lawLoads(1, make([]Load, w.Loads), 1))
		r.check(lawWaits(w))
		if i == 0 {
			continue // it grows stacks and pools
		}
		wakes := latencies(w.Wakes)
		p50, p99 = append(p50, ms(wakes.at(0.5))), append(p99, ms(wakes.at(0.99)))
		heap, stack = append(heap, w.Heap), append(stack, w.Stack)
		r.Curve = wakes.points()
	}
	r.add(figWakeP50, millis, median(p50))
	r.add(figWakeP99, millis, median(p99))
	r.add(figHeap, bytesEach, median(heap))
	r.add(figStack, bytesEach, median(stack))
	return r, nil
}

// lawWaits: everybody is served.
func lawWaits(w Waits) []violation {
	if w.Err == "" {
		return nil
	}
	return broken(4, "a waiter got no value but: %s", w.Err)
}

// Waits lets callers wait for one load, weighs them and wakes them.
func (w *worker) Waits(spec WaitSpec, out *Waits) error {
	var (
		gate, release = make(chan struct{}), make(chan struct{})
		ended         atomic.Int64 // instant at which the load did
		entered       sync.WaitGroup
		returned      sync.WaitGroup
		wakes         = make([]instant, spec.Waiters)
		errs          = make([]error, spec.Waiters)
		loads         atomic.Int64
	)
	load := func(context.Context) ([]byte, error) {
		loads.Add(1)
		<-release
		ended.Store(int64(now()))
		return encodeValue(1, 1, headerSize), nil
	}
	entered.Add(spec.Waiters)
	for i := range spec.Waiters {
		ctx, cancel := context.WithCancel(context.Background())
		_ = ctx.Done() // as a request's would be
		returned.Go(func() {
			defer cancel()
			<-gate
			entered.Done()
			_, _, errs[i] = w.contender.Get(ctx, spec.Key, load)
			wakes[i] = now()
		})
	}
	time.Sleep(settleTime)
	heap, stack := weigh()
	close(gate)
	entered.Wait()
	time.Sleep(settleTime)
	heavierHeap, heavierStack := weigh()
	out.Heap = float64(heavierHeap-heap) / float64(spec.Waiters)
	out.Stack = float64(heavierStack-stack) / float64(spec.Waiters)
	close(release)
	returned.Wait()
	for i, wake := range wakes {
		out.Wakes = append(out.Wakes, wake.sub(instant(ended.Load())))
		if errs[i] != nil {
			out.Err = firstLine(fmt.Sprint(errs[i]))
		}
	}
	slices.Sort(out.Wakes)
	out.Loads, out.Disturbed = int(loads.Load()), w.health.disturbed()
	return nil
}

// settleTime is how long many goroutines take to come to rest.
const settleTime = 300 * time.Millisecond

// weigh returns the bytes in use on the heap and by stacks.
func weigh() (heap, stack int64) {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}
