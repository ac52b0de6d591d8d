package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

func TestAsFollowsUnwrap(t *testing.T) {
	mem := memstore.New(nil)
	for name, s := range map[string]any{"itself": mem, "wrapped": wrapper{mem}, "wrapped twice": wrapper{wrapper{mem}}} {
		if w, ok := store.As[store.Watcher](s); !ok || w != store.Watcher(mem) {
			t.Errorf("%s: found %v, %t", name, w, ok)
		}
	}
	for name, s := range map[string]any{"nothing": nil, "no watcher": newPlain(), "a wrapper of nothing": wrapper{}} {
		if w, ok := store.As[store.Watcher](s); ok {
			t.Errorf("%s: found %v", name, w)
		}
	}
}

// TestAsFindsTheFirst: a wrapper that has a capability of its own is asked
// before what it wraps.
func TestAsFindsTheFirst(t *testing.T) {
	type watching struct {
		wrapper
		watcher
	}
	s := watching{wrapper: wrapper{memstore.New(nil)}}
	if w, _ := store.As[store.Watcher](s); w != store.Watcher(s) {
		t.Errorf("found %T", w)
	}
}

func TestFactsOf(t *testing.T) {
	if f := store.FactsOf(newPlain()); f != (store.Facts{}) {
		t.Errorf("a store that states nothing promises %+v", f)
	}
	if f := store.FactsOf(wrapper{memstore.New(nil)}); !f.Fences {
		t.Errorf("memory promises %+v", f)
	}
}

func TestWatchFallsBackToNil(t *testing.T) {
	for name, s := range map[string]any{"no watcher": newPlain(), "failing": watcher{errDown}} {
		events, stop := store.Watch(t.Context(), s, "key")
		if events != nil {
			t.Errorf("%s: got a channel", name)
		}
		stop()
	}
	events, stop := store.Watch(t.Context(), wrapper{memstore.New(nil)}, "key")
	if events == nil {
		t.Error("memory can be watched, got no channel")
	}
	stop()
}

func TestPutFallsBackToALease(t *testing.T) {
	p, version := newPlain(), store.NewToken()
	if err := store.Put(t.Context(), p, "key", version, []byte("value"), long); err != nil {
		t.Fatal(err)
	}
	e, err := p.Get(t.Context(), "key")
	if err != nil || e.Version != version || string(e.Value) != "value" {
		t.Errorf("got %+v, error %v", e, err)
	}
	if !p.equalCalls("Delete", "Claim", "Fill") {
		t.Errorf("the store was asked %v", p.calls)
	}
}

func TestPutPrefersPut(t *testing.T) {
	mem, version := memstore.New(nil), store.NewToken()
	var c store.Cache = struct {
		wrapper
		*plain
	}{wrapper{mem}, newPlain()}
	if err := store.Put(t.Context(), c, "key", version, []byte("value"), long); err != nil {
		t.Fatal(err)
	}
	if e, err := mem.Get(t.Context(), "key"); err != nil || e.Version != version {
		t.Errorf("got %+v, error %v", e, err)
	}
}

// TestPutTriesAgain: somebody else's lease got between Delete and Claim, or
// somebody deleted between Claim and Fill.
func TestPutTriesAgain(t *testing.T) {
	for _, between := range []string{"Delete", "Claim"} {
		p, version := newPlain(), store.NewToken()
		p.after["Delete"] = func(key string) {
			if between == "Delete" {
				_, _ = p.mem.Claim(t.Context(), store.Request{Key: key, Token: store.NewToken(), TTL: long})
			}
		}
		p.after["Claim"] = func(key string) {
			if between == "Claim" {
				_ = p.mem.Delete(t.Context(), key)
			}
		}
		if err := store.Put(t.Context(), p, "key", version, []byte("value"), long); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Get(t.Context(), "key"); err != nil || e.Version != version {
			t.Errorf("got %+v, error %v", e, err)
		}
		if p.count("Delete") != 2 {
			t.Errorf("the store was asked %v", p.calls)
		}
	}
}

// TestPutEndsWithTheContext: somebody always gets in between.
func TestPutEndsWithTheContext(t *testing.T) {
	p := newPlain()
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	var push func(key string)
	push = func(key string) {
		if tries++; tries == 10 {
			cancel()
		}
		_, _ = p.mem.Claim(t.Context(), store.Request{Key: key, Token: store.NewToken(), TTL: long})
		p.after["Delete"] = push
	}
	p.after["Delete"] = push
	if err := store.Put(ctx, p, "key", store.NewToken(), nil, long); !errors.Is(err, store.ErrLost) {
		t.Errorf("got error %v", err)
	}
	if tries != 10 {
		t.Errorf("tried %d times", tries)
	}
}

// TestLaw5FailedPutLeavesNoLease: whatever goes wrong, nobody has to wait for
// a lease of Put, also when the caller has left.
func TestLaw5FailedPutLeavesNoLease(t *testing.T) {
	for name, wreck := range map[string]func(p *plain) (value []byte, want error){
		"too large":    func(*plain) ([]byte, error) { return make([]byte, 2<<10), store.ErrTooLarge },
		"fill fails":   func(p *plain) ([]byte, error) { p.fail["Fill"] = errDown; return nil, errDown },
		"claim fails":  func(p *plain) ([]byte, error) { p.fail["Claim"] = errDown; return nil, errDown },
		"delete fails": func(p *plain) ([]byte, error) { p.fail["Delete"] = errDown; return nil, errDown },
	} {
		p := newPlain()
		ctx, cancel := context.WithCancel(t.Context())
		p.after["Claim"] = func(string) { cancel() }
		value, want := wreck(p)
		if err := store.Put(ctx, p, "key", store.NewToken(), value, long); !errors.Is(err, want) {
			t.Errorf("%s: got error %v", name, err)
		}
		if held, err := p.mem.Break(t.Context(), "key"); err != nil || held.Grant != 0 {
			t.Errorf("%s: left the lease %+v, error %v", name, held, err)
		}
		cancel()
	}
}

// TestPutValidatesFirst: what cannot be put must not delete what is there.
func TestPutValidatesFirst(t *testing.T) {
	p, version := newPlain(), store.NewToken()
	if err := store.Put(t.Context(), p, "key", version, nil, long); err != nil {
		t.Fatal(err)
	}
	if store.Put(t.Context(), p, "key", store.Token{}, nil, long) == nil ||
		store.Put(t.Context(), p, "key", version, nil, 0) == nil ||
		store.Put(t.Context(), p, "key", version, nil, -time.Second) == nil {
		t.Error("a put of nonsense succeeded")
	}
	if _, err := p.Get(t.Context(), "key"); err != nil {
		t.Errorf("the entry is gone: %v", err)
	}
}

func TestExpireFallsBackToDelete(t *testing.T) {
	p := newPlain()
	if err := store.Put(t.Context(), p, "key", store.NewToken(), nil, long); err != nil {
		t.Fatal(err)
	}
	if err := store.Expire(t.Context(), p, "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(t.Context(), "key"); !errors.Is(err, store.ErrMiss) {
		t.Errorf("got error %v", err)
	}
	p.fail["Delete"] = errDown
	if err := store.Expire(t.Context(), p, "key"); !errors.Is(err, errDown) {
		t.Errorf("got error %v", err)
	}
}

func TestExpirePrefersExpire(t *testing.T) {
	mem := memstore.New(nil)
	if err := mem.Put(t.Context(), "key", store.NewToken(), nil, long); err != nil {
		t.Fatal(err)
	}
	if err := store.Expire(t.Context(), mem, "key"); err != nil {
		t.Fatal(err)
	}
	if e, err := mem.Get(t.Context(), "key"); err != nil || !e.Stale {
		t.Errorf("got %+v, error %v", e, err)
	}
}

func TestRenewAllFallsBackToRenew(t *testing.T) {
	p := newPlain()
	var leases []store.Lease
	for _, key := range []string{"a", "b", "c"} {
		a, err := p.Claim(t.Context(), store.Request{Key: key, Token: store.NewToken(), TTL: long})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, a.Lease)
	}
	leases[1].Grant++
	renewed, errs := store.RenewAll(t.Context(), p, leases, 2*long)
	if len(renewed) != 3 || errs[0] != nil || !errors.Is(errs[1], store.ErrLost) || errs[2] != nil {
		t.Fatalf("got %v, %v", renewed, errs)
	}
	if !renewed[2].Expires.After(leases[2].Expires) || p.count("Renew") != 3 {
		t.Errorf("got %+v after %v", renewed[2], p.calls)
	}
	if renewed, errs := store.RenewAll(t.Context(), p, nil, long); len(renewed) != 0 || len(errs) != 0 {
		t.Errorf("got %v, %v", renewed, errs)
	}
}

func TestDeleteAllFallsBackToDelete(t *testing.T) {
	p := newPlain()
	for _, key := range []string{"a", "b"} {
		if err := store.Put(t.Context(), p, key, store.NewToken(), nil, long); err != nil {
			t.Fatal(err)
		}
	}
	p.fail["Delete"] = errDown // of the first
	errs := store.DeleteAll(t.Context(), p, []string{"a", "b"})
	if len(errs) != 2 || !errors.Is(errs[0], errDown) || errs[1] != nil {
		t.Fatalf("got %v", errs)
	}
	if _, err := p.Get(t.Context(), "b"); !errors.Is(err, store.ErrMiss) {
		t.Errorf("got error %v", err)
	}
}

// batches answers in one round trip.
type batches struct {
	*plain
	calls int
}

func (b *batches) RenewAll(_ context.Context, leases []store.Lease, _ time.Duration) ([]store.Lease, []error) {
	b.calls++
	return leases, make([]error, len(leases))
}

func (b *batches) DeleteAll(_ context.Context, keys []string) []error {
	b.calls++
	return make([]error, len(keys))
}

func TestBatchesArePreferred(t *testing.T) {
	b := &batches{plain: newPlain()}
	store.RenewAll(t.Context(), b, make([]store.Lease, 3), long)
	store.DeleteAll(t.Context(), b, make([]string, 3))
	if b.calls != 2 || len(b.plain.calls) != 0 {
		t.Errorf("%d batches, single calls %v", b.calls, b.plain.calls)
	}
}

type clock struct{ now time.Time }

func (c clock) Now() time.Time { return c.now }

func TestNow(t *testing.T) {
	theirs := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	if got := store.Now(wrapper{clock{theirs}}); !got.Equal(theirs) {
		t.Errorf("got %v", got)
	}
	if off := time.Since(store.Now(newPlain())); off < 0 || off > time.Minute {
		t.Errorf("a store without clock is off by %v", off)
	}
}
