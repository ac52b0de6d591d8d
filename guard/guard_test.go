package guard

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
	"github.com/herdgate/herdgate/store/storetest"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// open returns a guard that is closed at the end of the test. It has to be
// without leases then.
func open(t *testing.T, s store.Leaser, o *Options) *Guard {
	t.Helper()
	g, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

func acquired(t *testing.T, g *Guard, name string, o *AcquireOptions) *Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := g.Acquire(ctx, name, o)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return l
}

func released(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got the error %v, want %v", err, want)
	}
}

// ends waits until the lease is over, by the cause that is wanted.
func ends(t *testing.T, l *Lease, want error) {
	t.Helper()
	select {
	case <-l.Done():
		wantErr(t, context.Cause(l.Context()), want)
		wantErr(t, l.Err(), want)
	case <-time.After(patience):
		t.Fatalf("the lease on %q did not end", l.Name())
	}
}

// eventually waits until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	plain := leaserOnly{memstore.New(nil)}
	for _, test := range []struct {
		s           store.Leaser
		o           Options
		says        string
		unsupported bool
	}{
		{s: nil, says: "store is nil"},
		{s: plain, o: Options{TTL: -1}, says: "TTL is negative"},
		{s: plain, o: Options{MaxHold: -1}, says: "MaxHold is negative"},
		{s: plain, o: Options{Wait: -1}, says: "Wait is negative"},
		{s: plain, o: Options{StoreTimeout: -1}, says: "StoreTimeout is negative"},
		{s: plain, o: Options{StoreTimeout: 2 * time.Second, TTL: time.Second}, says: "StoreTimeout 2s is not shorter than TTL 1s"},
		{s: plain, o: Options{Namespace: "a:b"}, says: "colon"},
		{s: plain, o: Options{Fence: true}, says: "no fences", unsupported: true},
		{s: plain, o: Options{Durable: true}, says: "may forget", unsupported: true},
	} {
		g, err := New(test.s, &test.o)
		if g != nil || err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("New with %+v: %v does not say %q", test.o, err, test.says)
		}
		if errors.Is(err, errors.ErrUnsupported) != test.unsupported {
			t.Errorf("New with %+v: ErrUnsupported in %v, want %v", test.o, err, test.unsupported)
		}
	}
}

func TestAcquireNamesWhatIsWrong(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	for _, o := range []AcquireOptions{{TTL: -1}, {Expect: -1}, {AlertAfter: -1}} {
		if _, err := g.TryAcquire(t.Context(), "x", &o); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// leaserOnly hides everything that a store can do beyond leases.
type leaserOnly struct{ store.Leaser }

// TestLaw13NoSilentWeakening: a fence cannot be asked for in vain, and
// BestEffort has to be written.
func TestLaw13NoSilentWeakening(t *testing.T) {
	plain := &leaserOnly{memstore.New(nil)}
	g := open(t, plain, nil)
	_, err := g.Acquire(t.Context(), "x", &AcquireOptions{Fence: true})
	wantErr(t, err, errors.ErrUnsupported)

	g = open(t, plain, &Options{Fence: true, Durable: true, BestEffort: true})
	l := acquired(t, g, "x", nil)
	if l.Fence() != 0 {
		t.Errorf("a store without fences gave %d", l.Fence())
	}
	released(t, l)

	g = open(t, memstore.New(nil), &Options{Fence: true})
	var last uint64
	for range 3 {
		l := acquired(t, g, "x", nil)
		if l.Fence() <= last {
			t.Errorf("fence %d after %d", l.Fence(), last)
		}
		last = l.Fence()
		released(t, l)
	}

	g = open(t, memstore.New(nil), nil)
	l = acquired(t, g, "x", nil)
	_, err = g.Acquire(l.Context(), "x", &AcquireOptions{Fence: true})
	wantErr(t, err, errors.ErrUnsupported)
	if l.Err() != nil {
		t.Errorf("the lease was ended by a vain re-entry: %v", l.Err())
	}
	released(t, l)
}

func TestHeldErrorSaysWho(t *testing.T) {
	s := memstore.New(nil)
	g := open(t, s, &Options{Owner: "billing", Stack: true})
	asked := time.Now()
	l := acquired(t, g, "x", &AcquireOptions{Reason: "monthly run", Expect: time.Minute, AlertAfter: time.Hour})
	defer released(t, l)

	_, err := open(t, s, nil).TryAcquire(t.Context(), "x", nil)
	wantErr(t, err, ErrHeld)
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("%v is no HeldError", err)
	}
	n := held.Holder.Note
	if held.Key != "x" || n.Owner != "billing" || n.Reason != "monthly run" || n.Expect != time.Minute || n.AlertAfter != time.Hour {
		t.Errorf("the note of %q is %+v", held.Key, n)
	}
	if n.Host == "" || n.PID == 0 || n.Since.Before(asked.Add(-time.Second)) {
		t.Errorf("host, process or time are missing in %+v", n)
	}
	if !strings.Contains(n.Stack, "TestHeldErrorSaysWho") || len(n.Stack) > maxStack {
		t.Errorf("the stack is %q", n.Stack)
	}
	if !strings.Contains(err.Error(), "billing") || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("the message %q names neither holder nor name", err)
	}
}

func TestNamespacesAreApart(t *testing.T) {
	s := memstore.New(nil)
	first, second := open(t, s, nil), open(t, s, &Options{Namespace: "other"})
	defer released(t, acquired(t, first, "x", nil))
	released(t, acquired(t, second, "x", nil))
	_, err := s.Acquire(t.Context(), store.Request{Key: "guard:x", Token: store.NewToken(), TTL: time.Second})
	wantErr(t, err, ErrHeld)
}

// TestLaw12AnyNameIsLegal: a name is any bytes.
func TestLaw12AnyNameIsLegal(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	for _, name := range []string{"", "\x00\xff", "a:b", "{x}", strings.Repeat("long", 1000)} {
		l := acquired(t, g, name, nil)
		if l.Name() != name {
			t.Errorf("the lease on %q is called %q", name, l.Name())
		}
		_, err := g.TryAcquire(t.Context(), name, nil)
		wantErr(t, err, ErrHeld)
		released(t, l)
	}
}

func TestReleaseIsIdempotent(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	l := acquired(t, g, "x", nil)
	released(t, l)
	ends(t, l, ErrReleased)
	next := acquired(t, g, "x", nil)
	released(t, l)
	if next.Err() != nil {
		t.Errorf("a second release ended the next lease: %v", next.Err())
	}
	released(t, next)
}

func TestLeaseContextKeepsValuesAndOutlivesTheCall(t *testing.T) {
	g := open(t, memstore.New(nil), nil)
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	l, err := g.Acquire(ctx, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if l.Err() != nil || l.Context().Value(key{}) != "value" {
		t.Errorf("the lease ended with its call: %v, value %v", l.Err(), l.Context().Value(key{}))
	}
	if got, ok := FromContext(l.Context()); !ok || got != l {
		t.Errorf("FromContext found %v", got)
	}
	released(t, l)
}

// faulty puts faults in front of s, as if it were behind a network.
func faulty(s store.Leaser, inject storetest.Injector) store.Leaser {
	return &placed{Leaser: storetest.FaultyLeaser(s, inject)}
}

// placed is a store that is in the process, or is not.
type placed struct {
	store.Leaser
	local bool
}

func (p *placed) Unwrap() any { return p.Leaser }

func (p *placed) Facts() store.Facts {
	facts := store.FactsOf(p.Leaser)
	facts.Local = p.local
	return facts
}
