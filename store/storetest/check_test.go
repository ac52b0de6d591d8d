package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// memory is the Backend of the reference.
func memory() Backend {
	return Backend{
		Cache:          func(testing.TB) store.Cache { return small() },
		Leaser:         func(testing.TB) store.Leaser { return small() },
		ReadsInBatch:   true,
		Shards:         true,
		Facts:          store.Facts{Fences: true, Local: true},
		Watches:        true,
		Announces:      true,
		Queues:         true,
		Puts:           true,
		Expires:        true,
		RenewsInBatch:  true,
		DeletesInBatch: true,
		Breaks:         true,
		TellsTime:      true,
		MaxValue:       tooLarge,
		Virtual:        true,
	}
}

const tooLarge = 8<<20 + 1

func small() *mem { return &mem{memstore.New(&memstore.Options{MaxBytes: tooLarge - 1})} }

// mem is memory with what memory has no need of.
type mem struct{ *memstore.Store }

func (m *mem) GetAll(ctx context.Context, keys []string) ([]store.Entry, []error) {
	entries, errs := make([]store.Entry, len(keys)), make([]error, len(keys))
	for i, key := range keys {
		entries[i], errs[i] = m.Get(ctx, key)
	}
	return entries, errs
}

func (m *mem) Shard(key string) string { return "memory" }

// check runs the cases of b and returns the names of those that fail, with
// what they printed.
func check(t *testing.T, b Backend) map[string][]string {
	t.Helper()
	broken := map[string][]string{}
	for _, r := range roles(&b) {
		for _, c := range r.cases {
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{TB: t}
				rec.run(func() { c.do(rec, r) })
				if rec.Failed() {
					broken[r.name+"/"+c.name] = rec.lines
				}
			})
		}
	}
	return broken
}

// recorder is a testing.TB that fails without failing the test.
type recorder struct {
	testing.TB
	mu       sync.Mutex // protects what follows
	failed   bool
	lines    []string
	cleanups []func()
}

// run calls f, which may end its goroutine, and then cleans up.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(r.cleanups) {
				c()
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) log(failed bool, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.lines = append(r.lines, line)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(format string, args ...any)   { r.log(false, fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.log(true, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.log(true, fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.log(true, fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.log(true, fmt.Sprintf(format, args...))
	runtime.Goexit()
}
