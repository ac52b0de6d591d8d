package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Run is a job under way on some servers of a fleet.
type Run struct {
	fleet   *Fleet
	ctx     context.Context
	job     Job
	servers []*Server
	start   instant
	wg      sync.WaitGroup
	done    []Done
	errs    []error
}

// startDelay is how long after the last server is ready all of them start.
const startDelay = 5 * time.Millisecond

// Begin starts job at the same instant on the servers, on all if none is
// named. Wait for it.
func (f *Fleet) Begin(ctx context.Context, job Job, servers ...*Server) (*Run, error) {
	f.lastJob++
	job.ID = f.lastJob
	job.Bound = or(job.Bound, job.For+defaultBound)
	job.Timeout = or(job.Timeout, job.Bound)
	r := &Run{fleet: f, ctx: ctx, job: job, servers: f.or(servers)}
	err := f.each(r.servers, func(s *Server) error { return s.do(ctx, "Prepare", job) })
	if err != nil {
		return nil, err
	}
	r.done, r.errs = make([]Done, len(r.servers)), make([]error, len(r.servers))
	r.start = now().add(startDelay)
	start := Start{Job: job.ID, At: r.start}
	for i, s := range r.servers {
		r.wg.Go(func() { r.errs[i] = s.call(ctx, "Run", start, &r.done[i]) })
	}
	return r, nil
}

// defaultBound is how long a job may take beyond its own time.
const defaultBound = 20 * time.Second

// Cancel ends the contexts of the callers.
func (r *Run) Cancel() error {
	return r.fleet.each(r.servers, func(s *Server) error { return s.do(r.ctx, "Cancel", r.job.ID) })
}

// Wait returns the calls of the servers that lived to tell them, once the loads
// are known that those servers began.
func (r *Run) Wait() (calls []Call, stuck int, err error) {
	r.wg.Wait()
	for i, d := range r.done {
		switch {
		case r.errs[i] == nil:
			calls = append(calls, d.Calls...)
			stuck += d.Stuck
			err = errors.Join(err, r.awaitTold(r.servers[i], d.Told))
		case !errors.Is(r.errs[i], errFaulty):
			err = errors.Join(err, r.errs[i])
		}
	}
	return calls, stuck, err
}

func (r *Run) awaitTold(s *Server, n int64) error {
	return r.fleet.await(r.ctx, "what a server has to tell", func() bool { return s.told >= n || s.silent })
}

// Do is Begin and Wait.
func (f *Fleet) Do(ctx context.Context, job Job, servers ...*Server) (calls []Call, stuck int, err error) {
	r, err := f.Begin(ctx, job, servers...)
	if err != nil {
		return nil, 0, err
	}
	return r.Wait()
}

// follow lets the first server begin with one job and, once its load has
// begun, the followers with another of so many callers each.
func (f *Fleet) follow(ctx context.Context, first, then Job, callers int, followers ...*Server) (leader, others *Run, err error) {
	leader, err = f.Begin(ctx, first, f.servers[0])
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.AwaitLoad(ctx, first.Keys[0]); err != nil {
		return nil, nil, err
	}
	then.Callers = callers
	others, err = f.Begin(ctx, then, followers...)
	return leader, others, err
}

// or returns value, or fallback if value is zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
