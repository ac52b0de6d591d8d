package guard

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLaw4WaitersLeaveWithoutHoldingUpOthers: a waiter returns when its
// context ends, and the others get the lease as if it had never come.
func TestLaw4WaitersLeaveWithoutHoldingUpOthers(t *testing.T) {
	for name := range variants() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := variants()[name]
				for range 20 { // the contender, or one in line, or the last
					leaveOneByOne(t, open(t, s, nil), open(t, s, nil))
				}
			})
		})
	}
}

// TestLaw4TurnOfALeaverIsPassedOn: 1. somebody's context ends; 2. before he is
// out of the line, he is given the turn.
func TestLaw4TurnOfALeaverIsPassedOn(t *testing.T) {
	ls := lines{m: make(map[string]*line)}
	l, _, err := ls.take(t.Context(), nil, "x")
	if err != nil {
		t.Fatal(err)
	}
	turn := make(chan struct{})
	place := l.waiting.PushBack(turn)
	served := make(chan error)
	go func() { _, _, err := ls.take(t.Context(), nil, "x"); served <- err }()
	eventually(t, "another is in line", func() bool {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return l.waiting.Len() == 2
	})
	ls.pass("x")
	ls.quit("x", place, turn)
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("take: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("nobody has the turn")
	}
	ls.pass("x")
	if len(ls.m) != 0 {
		t.Errorf("%d lines are left", len(ls.m))
	}
}

func leaveOneByOne(t *testing.T, g, other *Guard) {
	l := acquired(t, other, "x", nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := g.Acquire(ctx, "x", nil)
			wantErr(t, err, context.DeadlineExceeded)
			wantErr(t, err, ErrHeld)
			if took := time.Since(start); took != time.Second {
				t.Errorf("left after %v", took)
			}
		})
	}
	var patient *Lease
	wg.Go(func() { patient = acquired(t, g, "x", nil) })
	time.Sleep(2 * time.Second)
	start := time.Now()
	released(t, l)
	wg.Wait()
	if took := time.Since(start); took > longestPoll {
		t.Errorf("the lease was free for %v before the last waiter got it", took)
	}
	released(t, patient)
	// Nothing is left of those who left: nobody has the lease.
	l, err := other.TryAcquire(t.Context(), "x", nil)
	if err != nil {
		t.Fatalf("TryAcquire: %v", err)
	}
	released(t, l)
}
