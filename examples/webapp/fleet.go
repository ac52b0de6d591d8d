package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	replicas = 3

	// grace is how long requests under way may take when the app ends.
	grace = 3 * time.Second
)

// fleet is the replicas and what they have in common.
type fleet struct {
	config   config
	journal  *journal
	replicas []*replica
	bursting sync.Mutex // held during a burst: one at a time

	requests context.Context // what the requests' contexts derive from
	abort    context.CancelFunc
	serving  sync.WaitGroup
	failed   chan error     // a replica stopped serving by itself
	closers  []func() error // run last to first
}

// start makes the database and starts the replicas. Either all of them serve,
// or nothing is left of it.
func start(ctx context.Context, cfg config) (_ *fleet, err error) {
	f := &fleet{config: cfg, journal: newJournal(replicas), failed: make(chan error, replicas)}
	f.requests, f.abort = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if err := f.makeDatabase(ctx); err != nil {
		return nil, err
	}
	open, err := storage(cfg.store)
	if err != nil {
		return nil, err
	}
	for i := range replicas {
		if err := f.addReplica(ctx, i, open); err != nil {
			return nil, err
		}
	}
	for _, r := range f.replicas {
		f.serving.Go(func() {
			if err := r.server.Serve(r.listener); !errors.Is(err, http.ErrServerClosed) {
				f.failed <- err
			}
		})
	}
	return f, nil
}

func (f *fleet) makeDatabase(ctx context.Context) error {
	if f.config.path == "" {
		dir, err := os.MkdirTemp("", "herdgate-webapp-")
		if err != nil {
			return err
		}
		f.closers = append(f.closers, func() error { return os.RemoveAll(dir) })
		f.config.path = filepath.Join(dir, "orders.db")
	}
	return createOrders(ctx, f.config.path, f.config.orders)
}

// addReplica opens everything that a replica has for itself. It does not serve
// yet, but its port takes connections.
func (f *fleet) addReplica(ctx context.Context, index int, open opener) error {
	s, closeStore, err := open(ctx)
	if err != nil {
		return err
	}
	f.closers = append(f.closers, closeStore)

	db, err := openDatabase(f.config.path)
	if err != nil {
		return err
	}
	f.closers = append(f.closers, db.close)

	port := f.config.port
	if port != 0 {
		port += index
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("replica %d: %w; -port chooses others", index+1, err)
	}
	f.closers = append(f.closers, func() error {
		_ = listener.Close() // closed by the server already, if it got to serve
		return nil
	})
	r, err := newReplica(f, index, listener, db, s)
	if err != nil {
		return err
	}
	f.replicas = append(f.replicas, r)
	return nil
}

// describe says where the replicas are and what they run on.
func (f *fleet) describe(out io.Writer) {
	fmt.Fprintf(out, "Orders: %s\nStore:  %s\nGuard:  %s\n\n", f.config.path, storageName(f.config.store), onOff(f.config.guard))
	for _, r := range f.replicas {
		fmt.Fprintf(out, "Replica %d: %s/\n", r.index+1, r.url)
	}
	fmt.Fprint(out, "\nOpen one of them. Ctrl-C ends all three.\n")
}

// close ends the servers first, then the caches with their loads, then what
// these run on. Requests and loads that outlast grace are cancelled.
func (f *fleet) close() error {
	errs := []error{f.shutdown()}
	for _, r := range f.replicas {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		errs = append(errs, r.cache.Close(ctx))
		cancel()
	}
	for _, closer := range slices.Backward(f.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// shutdown ends all servers at once. It waits for the requests under way, and
// cancels those that outlast grace.
func (f *fleet) shutdown() error {
	late := time.AfterFunc(grace, f.abort)
	defer late.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 2*grace)
	defer cancel()
	errs := make([]error, len(f.replicas))
	var ending sync.WaitGroup
	for i, r := range f.replicas {
		ending.Go(func() {
			if err := r.server.Shutdown(ctx); err != nil {
				errs[i] = errors.Join(fmt.Errorf("replica %d: requests did not end: %w", i+1, err), r.server.Close())
			}
		})
	}
	ending.Wait()
	f.abort()
	f.serving.Wait()
	return errors.Join(errs...)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
