package cachefill

import "testing"

// ForgetDefault closes the process-wide cache and puts none in its place, as
// when a program starts.
func ForgetDefault(t *testing.T) {
	t.Helper()
	standard.mu.Lock()
	old := standard.engine
	standard.engine = nil
	standard.mu.Unlock()
	if old == nil {
		return
	}
	if err := old.close(t.Context()); err != nil {
		t.Error(err)
	}
}
