package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// workerEnv makes a copy of this program a worker.
const workerEnv = "HERDGATE_LOADTEST_WORKER"

// worker is one server of a fleet: callers on one side, loaders on the other,
// a contender between them. Its exported methods are called by the bench.
type worker struct {
	setup     Setup
	contender Contender
	locker    Locker       // instead, if the setup says so
	health    health       // of herdgate's store
	source    atomic.Int64 // the version that loaders read at their beginning
	lastLoad  atomic.Uint64
	told      atomic.Int64
	loads     chan Load

	mu   sync.Mutex // protects jobs
	jobs map[int]*running
}

// runWorker serves the bench until its end of the pipe is closed.
func runWorker() error {
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr // what libraries print must not get into the replies
	w := &worker{jobs: map[int]*running{}, loads: make(chan Load, 1024)}
	go w.tellLoads(os.NewFile(3, "loads"))
	server := rpc.NewServer()
	if err := server.RegisterName("Worker", w); err != nil {
		return err
	}
	server.ServeConn(struct {
		io.Reader
		io.WriteCloser
	}{in, out})
	return nil
}

// tellLoads writes what is sent on w.loads, as soon as nothing more waits.
func (w *worker) tellLoads(out io.Writer) {
	buffer := bufio.NewWriter(out)
	encoder := gob.NewEncoder(buffer)
	for l := range w.loads {
		if encoder.Encode(l) != nil {
			return // the bench is gone, and so is this worker soon
		}
		if len(w.loads) == 0 {
			_ = buffer.Flush()
		}
	}
}

func (w *worker) tell(l Load) {
	w.told.Add(1)
	w.loads <- l
}

// Open makes the contender, or the locker.
func (w *worker) Open(s Setup, _ *None) (err error) {
	w.setup = s
	if s.Locks {
		w.locker, err = openLocker(s)
		return err
	}
	w.contender, err = open(s, &w.health)
	return err
}

// Close closes what Open made.
func (w *worker) Close(None, *None) error {
	if w.locker != nil {
		return w.locker.Close()
	}
	return w.contender.Close()
}

// SetSource changes what loaders read that begin from now on.
func (w *worker) SetSource(version int64, _ *None) error {
	w.source.Store(version)
	return nil
}

// Disturbed answers how often the store did not answer in time since it was
// asked last.
func (w *worker) Disturbed(_ None, n *int) error {
	*n = w.health.disturbed()
	return nil
}

// Invalidate ends the validity of a key, within closeTimeout.
func (w *worker) Invalidate(key string, _ *None) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return w.contender.Invalidate(ctx, key)
}

// Prepare gets the callers of a job ready, up to the starting line.
func (w *worker) Prepare(j Job, _ *None) error {
	r := &running{Job: j, gate: make(chan struct{}), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	w.mu.Lock()
	w.jobs[j.ID] = r
	w.mu.Unlock()
	var ready sync.WaitGroup
	ready.Add(j.Callers)
	r.left.Add(int64(j.Callers))
	for range j.Callers {
		go func() {
			ready.Done()
			<-r.gate
			w.caller(r)
			if r.left.Add(-1) == 0 {
				close(r.done)
			}
		}()
	}
	ready.Wait()
	return nil
}

// stuckAfter is how long after its time is up a caller is given up.
const stuckAfter = 3 * time.Second

// Run starts a prepared job and returns when its callers have.
func (w *worker) Run(s Start, out *Done) error {
	w.mu.Lock()
	r := w.jobs[s.Job]
	w.mu.Unlock()
	if r == nil {
		return fmt.Errorf("loadtest: no job %d", s.Job)
	}
	defer w.forget(r)
	<-s.At.wait()
	r.start = s.At
	close(r.gate)
	select {
	case <-r.done:
	case <-time.After(r.Bound):
		r.cancel()
		select {
		case <-r.done:
		case <-time.After(stuckAfter):
		}
	}
	*out = Done{Calls: r.recorded(), Stuck: int(r.left.Load()), Told: w.told.Load()}
	return nil
}

func (w *worker) forget(r *running) {
	r.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, r.ID)
}

// Cancel ends the contexts of all callers of a job.
func (w *worker) Cancel(job int, _ *None) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.jobs[job]; r != nil {
		r.cancel()
	}
	return nil
}
