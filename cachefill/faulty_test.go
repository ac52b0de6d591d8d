package cachefill_test

import (
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/storetest"
)

// faults says what happens to the calls of a faulty store, by name.
type faults struct {
	mu     sync.Mutex // protects what follows
	byName map[string]storetest.Fault
	once   map[string]bool // the fault happens to the next call only
}

// newFaulty returns a store in memory and its faults: none, to begin with.
func newFaulty() (store.Cache, *faults) {
	f := new(faults)
	f.clear()
	return storetest.FaultyCache(newStore(), f.inject), f
}

func (f *faults) inject(op storetest.Op) storetest.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := f.byName[op.Name]
	if f.once[op.Name] {
		delete(f.byName, op.Name)
	}
	return fault
}

// set makes the fault happen to all calls of these names.
func (f *faults) set(fault storetest.Fault, names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.byName[name], f.once[name] = fault, false
	}
}

// next makes the fault happen to the next call of each name.
func (f *faults) next(fault storetest.Fault, names ...string) {
	f.set(fault, names...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.once[name] = true
	}
}

// clear ends all faults.
func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byName, f.once = make(map[string]storetest.Fault), make(map[string]bool)
}

// slow is a fault of replies that take their time.
func slow(d time.Duration) storetest.Fault { return storetest.Fault{Applied: true, Delay: d} }

// lost is a fault of replies that do not arrive, though it was done.
var lost = storetest.Fault{Applied: true, Err: storetest.ErrFault}

// dead is a fault of requests that do not arrive.
var dead = storetest.Fault{Err: storetest.ErrFault}
