package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress is one line that says what the bench is at. On a terminal it is
// written over itself, elsewhere it is repeated now and then.
type progress struct {
	out      io.Writer // nil: silent
	terminal bool
	start    time.Time
	bound    time.Duration

	mu    sync.Mutex // protects what follows
	at    string     // scenario and contender
	steps string
	wrote time.Time
}

// newProgress returns a line on f for a run of at most bound.
func newProgress(f *os.File, bound time.Duration) *progress {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &progress{out: f, terminal: terminal, start: time.Now(), bound: bound}
}

// enter begins a contender of a scenario.
func (p *progress) enter(n, of int, scenario, contender string) {
	p.mu.Lock()
	p.at, p.steps = fmt.Sprintf("[%d/%d] %s: %s", n, of, scenario, contender), ""
	p.mu.Unlock()
	p.write()
}

// step says how far the contender is.
func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	p.steps = fmt.Sprintf(format, args...)
	p.mu.Unlock()
	p.write()
}

// write writes the line, unless it did so just now.
func (p *progress) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := 10 * time.Second
	if p.terminal {
		every = 100 * time.Millisecond
	}
	if p.out == nil || time.Since(p.wrote) < every {
		return
	}
	p.wrote = time.Now()
	line := fmt.Sprintf("%s %s · %v of at most %v", p.at, p.steps, time.Since(p.start).Round(time.Second), p.bound)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\033[K%s", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// watch keeps the line up to date until stop is called.
func (p *progress) watch() (stop func()) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.write()
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
		p.clear()
	}
}

// clear removes the line from a terminal, so that something else can be
// written.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.out != nil {
		fmt.Fprint(p.out, "\r\033[K")
	}
	p.wrote = time.Time{}
}
