// Package servertest starts real servers on free loopback ports, for the tests
// and the load test, and provokes what happens to servers: kill them, pause
// them, restart them empty.
//
// A server that is not installed is an error, never a skipped test;
// scripts/test installs what is missing.
package servertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// TB is the part of testing.TB that starting a server needs, so that programs
// can use this package without linking package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	TempDir() string
}

// startTimeout is how long a server may take until it answers.
const startTimeout = 20 * time.Second

// Process is one server process.
type Process struct {
	// Addr is the host:port on which it listens. It stays the same over
	// Restart.
	Addr string

	program string
	args    []string
	dir     string
	ready   func(ctx context.Context, addr string) error

	mu     sync.Mutex // protects what follows
	cmd    *exec.Cmd
	output *bytes.Buffer
	exited chan struct{}
}

// start runs program in dir until ready returns nil for addr.
func start(ctx context.Context, program, dir, addr string, args []string, ready func(context.Context, string) error) (*Process, error) {
	p := &Process{Addr: addr, program: program, args: args, dir: dir, ready: ready}
	if err := p.Restart(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Restart starts the server again on the same port after Kill, and
// waits until it answers. What it held in memory is gone.
func (p *Process) Restart(ctx context.Context) error {
	path, err := exec.LookPath(p.program)
	if err != nil {
		return fmt.Errorf("servertest: %s is not installed; scripts/test installs it: %w", p.program, err)
	}
	cmd, output, exited := exec.Command(path, p.args...), new(bytes.Buffer), make(chan struct{})
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("servertest: starting %s: %w", p.program, err)
	}
	go func() { _ = cmd.Wait(); close(exited) }()

	p.mu.Lock()
	p.cmd, p.output, p.exited = cmd, output, exited
	p.mu.Unlock()
	return p.awaitReady(ctx, exited)
}

// awaitReady asks the server until it answers. Its exit ends the wait early.
func (p *Process) awaitReady(ctx context.Context, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := p.ready(ctx, p.Addr)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("servertest: %s exited at once:\n%s", p.program, p.output)
		case <-ctx.Done():
			p.Kill()
			return fmt.Errorf("servertest: %s on %s did not answer: %w\n%s", p.program, p.Addr, err, p.output)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the process by SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	<-exited
}

// Pause stops the process by SIGSTOP: connections stay open, nothing answers.
// When it returns, all threads have stopped.
func (p *Process) Pause() {
	p.signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(startTimeout); !p.stopped() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// stopped reports whether every thread of the process is stopped, state T in
// proc(5).
func (p *Process) stopped() bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		_, state, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Continue lets a paused process run on.
func (p *Process) Continue() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(s) // it may have exited
}

// PID is the process id of the server.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// freePort returns a port on which nobody listens, and keeps it from the other
// processes that use this package: they may run at the same time, and each
// would take the other's server for its own. It lies below the ports that
// outgoing connections get, so that it is still free after a Kill.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if err = reserve(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("servertest: no free port: %w", err)
}

// reserve takes port for this process by holding its UDP twin, which no server
// here uses, until the process ends.
func reserve(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	defer l.Close()
	twin, err := net.ListenPacket("udp", loopback(port))
	if err != nil {
		return err
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.twins = append(reserved.twins, twin)
	return nil
}

var reserved struct {
	sync.Mutex
	twins []net.PacketConn // never closed, and kept from the garbage collector
}

// startOnFreePort tries a few ports, since a process of somebody else can take
// a free one before the server does.
func startOnFreePort(ctx context.Context, start func(port int) (*Process, error)) (p *Process, err error) {
	for range 5 {
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		if p, err = start(port); err == nil || ctx.Err() != nil {
			return p, err
		}
	}
	return nil, err
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// answers returns nil if the server at addr answers question, a line, with a
// line that begins with want.
func answers(ctx context.Context, addr, question, want string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write([]byte(question + "\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, want) {
		err = fmt.Errorf("it answered %q", line)
	}
	return err
}
