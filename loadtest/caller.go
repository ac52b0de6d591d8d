package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// running is a job under way.
type running struct {
	Job
	ctx    context.Context
	cancel context.CancelFunc
	gate   chan struct{} // closed at the start
	start  instant       // set before gate is closed
	loads  atomic.Int64  // begun
	left   atomic.Int64  // callers still running
	done   chan struct{} // closed when none is

	mu    sync.Mutex // protects calls
	calls []Call
}

func (r *running) record(c Call) {
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.mu.Unlock()
}

func (r *running) recorded() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[:len(r.calls):len(r.calls)]
}

// caller makes calls until the job is over for it.
func (w *worker) caller(r *running) {
	order := make([]int, len(r.Keys))
	for i := range order {
		order[i] = i
	}
	if r.Shuffle {
		order = rand.Perm(len(r.Keys))
	}
	for i := 0; r.ctx.Err() == nil; i++ {
		c := w.call(r, r.Keys[order[i%len(order)]])
		r.record(c)
		if r.over(c, i+1) {
			return
		}
		r.pause()
	}
}

// over reports whether a caller is done after n calls, the last of them c.
func (r *running) over(c Call, n int) bool {
	switch {
	case r.UntilOK && c.ok():
		return true
	case r.Calls > 0 && n >= r.Calls:
		return true
	default:
		return r.For > 0 && c.End.sub(r.start) >= r.For
	}
}

// pause is the time between two calls: Pace, give or take a half.
func (r *running) pause() {
	if r.Pace <= 0 {
		return
	}
	select {
	case <-time.After(r.Pace/2 + rand.N(r.Pace)):
	case <-r.ctx.Done():
	}
}

// call makes one call and notes what came of it.
func (w *worker) call(r *running, key string) (c Call) {
	ctx, cancel := context.WithTimeout(r.ctx, r.Timeout)
	defer cancel()
	c = Call{Worker: w.setup.Worker, Key: key, Start: now()}
	defer func() {
		if p := recover(); p != nil {
			c.Panicked, c.Err = true, firstLine(fmt.Sprint(p))
		}
		c.End = now()
	}()
	value, outcome, err := w.contender.Get(ctx, key, w.loader(r, key))
	c.Outcome = outcome
	if err == nil {
		c.Version, c.Load, err = decodeValue(value)
	}
	if err != nil {
		c.Err = firstLine(err.Error())
	}
	return c
}

// loader returns the loader of key that r describes. It tells when it begins
// and ends.
func (w *worker) loader(r *running, key string) Loader {
	return func(ctx context.Context) ([]byte, error) {
		l := Load{
			ID:      uint64(w.setup.Worker)<<32 | w.lastLoad.Add(1),
			Worker:  w.setup.Worker,
			Key:     key,
			Version: w.source.Load(),
			Alone:   w.health.alone(key),
			Start:   now(),
		}
		ending := r.ending(l.Start)
		w.tell(l)
		err := r.Load.wait(ctx, ending)
		l.End = now()
		if err != nil {
			l.Err = firstLine(err.Error())
		}
		w.tell(l)
		if ending == Panic {
			panic(err)
		}
		if err != nil {
			return nil, err
		}
		return encodeValue(l.Version, l.ID, r.Load.Size), nil
	}
}

// ending returns how the load that begins now ends.
func (r *running) ending(begin instant) Ending {
	n := r.loads.Add(1)
	if r.Load.Only > 0 && n > r.Load.Only {
		return Value
	}
	if r.Load.Until > 0 && begin.sub(r.start) >= r.Load.Until {
		return Value
	}
	return r.Load.Ending
}

var (
	errSource = errors.New("loadtest: the source is out of order")
	errPanic  = errors.New("loadtest: the loader panics")
)

// wait is the work of a load.
func (s LoadSpec) wait(ctx context.Context, ending Ending) error {
	if ending == Hang {
		select {}
	}
	select {
	case <-time.After(s.Takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch ending {
	case Fail:
		return errSource
	case Panic:
		return errPanic
	default:
		return nil
	}
}

// firstLine returns the beginning of a text, short enough for a table.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s[:min(len(s), 160)]
}
