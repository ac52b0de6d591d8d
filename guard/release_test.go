package guard

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

// TestLaw11LostReplyOfARelease: the second try hears ErrLost, and that is no
// loss.
func TestLaw11LostReplyOfARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		inject, _ := once("Release", lostReply)
		g := open(t, faulty(s, inject), nil)
		if err := g.Do(t.Context(), "x", func(context.Context) error { return nil }); err != nil {
			t.Errorf("Do: %v", err)
		}
		released(t, acquired(t, open(t, s, nil), "x", nil))
	})
}

// TestLaw11ReleaseAfterTheCallersContextEnded: cleaning up does not use it.
func TestLaw11ReleaseAfterTheCallersContextEnded(t *testing.T) {
	s := memstore.New(nil)
	g := open(t, faulty(s, func(storetest.Op) storetest.Fault { return storetest.Fault{} }), nil)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := g.Acquire(ctx, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := l.Release(ctx); err != nil {
		t.Errorf("Release: %v", err)
	}
	if l, err = g.TryAcquire(t.Context(), "x", nil); err != nil {
		t.Fatalf("the lease was left behind: %v", err)
	}
	released(t, l)
}

// TestLaw9ReleaseIsTriedAgainInTheBackground: the store does not answer for a
// while, the caller does not wait for it.
func TestLaw9ReleaseIsTriedAgainInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		var down atomic.Bool
		g := open(t, faulty(s, func(op storetest.Op) storetest.Fault {
			if op.Name == "Release" && down.Load() {
				return lostRequest
			}
			return storetest.Fault{}
		}), nil)
		l := acquired(t, g, "x", nil)
		down.Store(true)
		start := time.Now()
		wantErr(t, l.Release(t.Context()), ErrUnavailable)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the caller waited %v", took)
		}
		wantErr(t, l.Release(t.Context()), ErrUnavailable)
		down.Store(false)
		time.Sleep(time.Second)
		if l, err := open(t, s, nil).TryAcquire(t.Context(), "x", nil); err != nil {
			t.Errorf("not released: %v", err)
		} else {
			released(t, l)
		}
	})
}

// TestUnreleasedLeaseIsReported: what cannot be returned to anybody is logged.
func TestUnreleasedLeaseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := open(t, faulty(memstore.New(nil), func(op storetest.Op) storetest.Fault {
			if op.Name == "Release" {
				return lostRequest
			}
			return storetest.Fault{}
		}), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := g.Do(t.Context(), "x", func(context.Context) error { return nil }); err != nil {
			t.Errorf("Do: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(log.String(), "left to lapse"); n != 1 {
			t.Errorf("logged %q", log.String())
		}
	})
}
