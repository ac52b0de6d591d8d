package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// Server is one process of a fleet.
type Server struct {
	n       int
	cmd     *exec.Cmd
	client  *rpc.Client
	said    tail
	reading sync.WaitGroup
	faulty  atomic.Bool // killed by the bench

	once   sync.Once // ends the process
	exited chan struct{}

	told   int64 // protected by the fleet's mu, like silent
	silent bool
}

// do calls a method that answers with none.
func (s *Server) do(ctx context.Context, method string, arg any) error {
	return s.call(ctx, method, arg, new(None))
}

// call calls a method of the worker.
func (s *Server) call(ctx context.Context, method string, arg, reply any) error {
	c := s.client.Go("Worker."+method, arg, reply, make(chan *rpc.Call, 1))
	select {
	case <-c.Done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var remote rpc.ServerError
	if c.Error == nil || errors.As(c.Error, &remote) {
		return c.Error
	}
	if s.faulty.Load() {
		return errFaulty
	}
	s.Kill() // and have all that it said
	return fmt.Errorf("%w: server %d, asked to %s: %v\n%s", errCrashed, s.n, method, c.Error, &s.said)
}

var (
	errFaulty  = errors.New("loadtest: the bench has ended this server")
	errCrashed = errors.New("loadtest: a server process died")
)

// Kill ends the process at once.
func (s *Server) Kill() {
	s.once.Do(func() {
		_ = s.cmd.Process.Kill()
		s.reading.Wait()
		_ = s.cmd.Wait()
		_ = s.client.Close()
		close(s.exited)
	})
	<-s.exited
}

// Crash is a Kill that the scenario asks for.
func (s *Server) Crash() {
	s.faulty.Store(true)
	s.Kill()
}

// Pause stops the process until Continue.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue lets a paused process run on.
func (s *Server) Continue() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// tail keeps the last of what is written to it.
type tail struct {
	mu  sync.Mutex // protects buf
	buf []byte
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
