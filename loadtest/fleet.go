package main

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Fleet is a number of server processes that share a store.
type Fleet struct {
	setup   Setup
	servers []*Server
	lastJob int

	mu      sync.Mutex // protects what follows, and told of the servers
	loads   map[uint64]Load
	changed chan struct{} // closed and replaced when a load is told
}

// startFleet starts n workers with this setup. Stop it.
func startFleet(ctx context.Context, n int, setup Setup) (*Fleet, error) {
	f := &Fleet{setup: setup, loads: map[uint64]Load{}, changed: make(chan struct{})}
	for i := range n {
		s, err := f.startServer(i)
		if err != nil {
			f.Stop()
			return nil, err
		}
		f.servers = append(f.servers, s)
	}
	err := f.each(f.servers, func(s *Server) error {
		setup := setup
		setup.Worker = s.n
		return s.do(ctx, "Open", setup)
	})
	if err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// startServer starts one worker process. It dies with this one.
func (f *Fleet) startServer(n int) (*Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	loads, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	s := &Server{n: n, cmd: exec.Command(self), exited: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), workerEnv+"=1")
	s.cmd.ExtraFiles = []*os.File{theirs}
	s.cmd.Stderr = &s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // an interrupt of the terminal is for the bench, which ends its workers
		Pdeathsig: syscall.SIGKILL,
	}
	in, err1 := s.cmd.StdinPipe()
	out, err2 := s.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, s.cmd.Start()); err != nil {
		loads.Close()
		return nil, fmt.Errorf("loadtest: starting a server process: %w", err)
	}
	s.client = rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{out, in})
	s.reading.Go(func() { f.readLoads(s, loads) })
	return s, nil
}

// readLoads notes the loads that s tells of, until it is gone.
func (f *Fleet) readLoads(s *Server, in io.ReadCloser) {
	defer in.Close()
	decoder := gob.NewDecoder(in)
	for {
		var l Load
		err := decoder.Decode(&l)
		f.mu.Lock()
		if err == nil {
			f.loads[l.ID] = l
			s.told++
		} else {
			s.silent = true
		}
		close(f.changed)
		f.changed = make(chan struct{})
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await returns once met says so, which is asked whenever a load was told.
func (f *Fleet) await(ctx context.Context, what string, met func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for {
		f.mu.Lock()
		ok, changed := met(), f.changed
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("loadtest: waiting for %s: %w", what, ctx.Err())
		}
	}
}

// awaitTimeout is how long the bench waits for something that happens at once
// unless a contender is broken.
const awaitTimeout = 10 * time.Second

// AwaitLoad returns the first load that began on key.
func (f *Fleet) AwaitLoad(ctx context.Context, key string) (first Load, err error) {
	err = f.await(ctx, "a load of "+key, func() bool {
		for _, l := range f.loads {
			if l.Key == key && (first.ID == 0 || l.Start < first.Start) {
				first = l
			}
		}
		return first.ID != 0
	})
	return first, err
}

// Loads returns the loads told so far of the keys, of all keys if none is
// named, by their start.
func (f *Fleet) Loads(keys ...string) []Load {
	f.mu.Lock()
	defer f.mu.Unlock()
	var loads []Load
	for _, l := range f.loads {
		if len(keys) == 0 || slices.Contains(keys, l.Key) {
			loads = append(loads, l)
		}
	}
	slices.SortFunc(loads, func(a, b Load) int { return int(a.Start.sub(b.Start)) })
	return loads
}

// Forget drops the loads told so far.
func (f *Fleet) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.loads)
}

// SetSource changes on every server what loaders read that begin from now on.
func (f *Fleet) SetSource(ctx context.Context, version int64, servers ...*Server) error {
	return f.each(f.or(servers), func(s *Server) error { return s.do(ctx, "SetSource", version) })
}

// Disturbed returns how often herdgate's store did not answer in time since it
// was asked last, on the servers that live.
func (f *Fleet) Disturbed(ctx context.Context) (int, error) {
	each := make([]int, len(f.servers))
	err := f.each(f.servers, func(s *Server) error {
		err := s.call(ctx, "Disturbed", None(true), &each[s.n])
		if errors.Is(err, errFaulty) {
			return nil
		}
		return err
	})
	n := 0
	for _, e := range each {
		n += e
	}
	return n, err
}

// checkLoads checks that there are n loads, if the store answered all the time.
func (f *Fleet) checkLoads(ctx context.Context, r *result, law int, loads []Load, n int) error {
	disturbed, err := f.Disturbed(ctx)
	if err != nil {
		return err
	}
	r.checkCounts(disturbed, lawLoads(law, loads, n))
	return nil
}

// or returns servers, or all of them if there are none.
func (f *Fleet) or(servers []*Server) []*Server {
	if len(servers) == 0 {
		return f.servers
	}
	return servers
}

// each calls fn for the servers at the same time. It returns the error of the
// first server that has one: they mostly say the same.
func (f *Fleet) each(servers []*Server, fn func(*Server) error) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = fn(s) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// Stop ends the processes, politely where they still listen.
func (f *Fleet) Stop() {
	_ = f.each(f.servers, func(s *Server) error {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout+time.Second)
		defer cancel()
		if !s.faulty.Load() {
			_ = s.do(ctx, "Close", None(true))
		}
		s.Kill()
		return nil
	})
}
