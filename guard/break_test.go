package guard

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

// TestBreakWakesTheHolder: a holder hears at once that its lease was ended.
func TestBreakWakesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		g, operator := open(t, s, &Options{Owner: "stuck"}), open(t, s, nil)
		l := acquired(t, g, "x", nil)
		time.Sleep(time.Second)
		start := time.Now()
		who, err := operator.Break(t.Context(), "x")
		if err != nil || who.Note.Owner != "stuck" {
			t.Errorf("broke the lease of %+v: %v", who, err)
		}
		ends(t, l, ErrLost)
		if took := time.Since(start); took != 0 {
			t.Errorf("the holder heard after %v", took)
		}
		wantErr(t, l.Release(t.Context()), ErrLost)
		if who, err = operator.Break(t.Context(), "x"); err != nil || who != (Holder{}) {
			t.Errorf("nobody had it, broke %+v: %v", who, err)
		}
	})
}

// TestBreakBeforeTheHolderWatches: 1. the lease is granted; 2. somebody breaks
// it; 3. the holder begins to watch, too late for the event. It hears of it
// all the same, since it renews as soon as the watch is live.
func TestBreakBeforeTheHolderWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, memstore.New(nil), nil)
		l := acquired(t, g, "x", nil)
		start := time.Now()
		if _, err := g.Break(t.Context(), "x"); err != nil {
			t.Errorf("Break: %v", err)
		}
		ends(t, l, ErrLost)
		if took := time.Since(start); took > 2*watchAfter {
			t.Errorf("the holder heard after %v", took)
		}
	})
}

// TestFailedWatchIsTriedAgain: with the next renewal, so that a lease that was
// acquired while wake-ups were down is watched later.
func TestFailedWatchIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		var down atomic.Bool
		down.Store(true)
		g := open(t, faulty(s, func(op storetest.Op) storetest.Fault {
			if op.Name == "Watch" && down.Load() {
				return lostRequest
			}
			return storetest.Fault{}
		}), nil)
		l := acquired(t, g, "x", nil)
		time.Sleep(time.Minute)
		if l.Err() != nil {
			t.Errorf("lost without a watch: %v", l.Err())
		}
		down.Store(false)
		time.Sleep(9 * time.Second)
		start := time.Now()
		if _, err := g.Break(t.Context(), "x"); err != nil {
			t.Errorf("Break: %v", err)
		}
		ends(t, l, ErrLost)
		if took := time.Since(start); took != 0 {
			t.Errorf("the holder heard after %v", took)
		}
	})
}

func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, memstore.New(nil), nil)
		old := acquired(t, g, "x", nil)
		l, err := g.TakeOver(t.Context(), "x", &AcquireOptions{Reason: "stuck"})
		if err != nil {
			t.Fatal(err)
		}
		ends(t, old, ErrLost)
		if l.Err() != nil {
			t.Errorf("the new lease ended: %v", l.Err())
		}
		released(t, l)

		plain := open(t, &leaserOnly{memstore.New(nil)}, nil)
		_, err = plain.TakeOver(t.Context(), "x", nil)
		wantErr(t, err, errors.ErrUnsupported)
	})
}

func TestBreakOfASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, faulty(memstore.New(nil), func(storetest.Op) storetest.Fault {
			return storetest.Fault{Delay: time.Hour}
		}), nil)
		_, err := g.Break(t.Context(), "x")
		wantErr(t, err, ErrUnavailable)
	})
}
