package main

import "sync"

// health is what herdgate says of its store in one worker. A load that it runs
// because the store did not answer within the store budget, as law 9 has it,
// must not be taken for a second load under law 1.
type health struct {
	mu       sync.Mutex      // protects what follows
	failures int             // calls that the store did not answer in time
	breakers int             // that are open
	pending  map[string]bool // keys of such calls, until they are loaded
}

// failed notes that a call on key was not answered.
func (h *health) failed(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
	if h.pending == nil {
		h.pending = map[string]bool{}
	}
	h.pending[key] = true
}

// breaker notes that a breaker opened or closed.
func (h *health) breaker(open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if open {
		h.breakers++
		return
	}
	h.breakers--
}

// alone reports whether the load of key that begins now runs without the
// store.
func (h *health) alone(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	alone := h.breakers > 0 || h.pending[key]
	delete(h.pending, key)
	return alone
}

// disturbed returns how often the store did not answer since it was asked
// last, at least 1 while a breaker is open.
func (h *health) disturbed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := max(h.failures, h.breakers)
	h.failures = 0
	return n
}
