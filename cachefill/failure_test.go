package cachefill

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFailureRoundTrip(t *testing.T) {
	errDown, errSlow := errors.New("down"), errors.New("slow")
	s := settings{errors: map[string]error{"slow": errSlow, "down": errDown, "other": errors.New("other")}}
	f := s.failureOf(kindError, fmt.Errorf("query: %w, %w", errSlow, errDown), 2)
	kept := decodeFailure(f.store(time.Second).Data)
	if kept == nil || kept.Kind != kindError || kept.Text != "query: slow, down" || kept.Count != 3 ||
		fmt.Sprint(kept.Names) != "[down slow]" {
		t.Fatalf("kept %+v", kept)
	}
	var le *LoadError
	err := s.errOf(kept, time.Minute)
	if !errors.As(err, &le) || le.Text != f.Text || le.Count != 3 || le.RetryAfter != time.Minute {
		t.Errorf("got %+v", le)
	}
	for _, want := range []error{ErrLoadFailed, errDown, errSlow} {
		if !errors.Is(err, want) {
			t.Errorf("the error of another server does not match %v", want)
		}
	}
	if errors.Is(err, s.errors["other"]) || errors.Is(err, ErrPanicked) {
		t.Error("the error of another server matches what it is not")
	}
	bare := settings{}
	if err := bare.errOf(kept, 0); errors.Is(err, errDown) || !errors.Is(err, ErrLoadFailed) {
		t.Errorf("on a server that has not registered it: %v", err)
	}
}

func TestFailureKindsMatchTheirSentinels(t *testing.T) {
	s := settings{}
	for kind, want := range map[string]error{kindPanic: ErrPanicked, kindTimeout: ErrLoadTimeout} {
		kept := decodeFailure(s.failureOf(kind, want, 0).store(0).Data)
		if err := s.errOf(kept, 0); !errors.Is(err, want) || !errors.Is(err, ErrLoadFailed) {
			t.Errorf("%s: %v, want %v", kind, err, want)
		}
	}
}

// TestFailureTextIsBounded, and not cut within a letter.
func TestFailureTextIsBounded(t *testing.T) {
	s := settings{}
	for _, letter := range []string{"x", "é", "日", "🙂"} {
		for shift := range 4 {
			text := strings.Repeat("x", shift) + strings.Repeat(letter, 1000)
			kept := decodeFailure(s.failureOf(kindError, errors.New(text), 0).store(0).Data)
			if len(kept.Text) > maxFailureText || len(kept.Text) <= maxFailureText-len(letter) {
				t.Errorf("%q: kept %d bytes", letter, len(kept.Text))
			}
			if !utf8.ValidString(kept.Text) || !strings.HasPrefix(text, kept.Text) {
				t.Errorf("%q: kept %q", letter, kept.Text[len(kept.Text)-8:])
			}
		}
	}
}

func TestCoolDownDoublesWithinBounds(t *testing.T) {
	s := settings{coolDown: time.Second, uncacheable: time.Minute}
	for _, test := range []struct {
		kind     string
		count    int
		servable bool
		want     time.Duration
	}{
		{kindError, 1, false, time.Second},
		{kindError, 2, false, 2 * time.Second},
		{kindError, 3, false, 4 * time.Second},
		{kindError, 4, false, 5 * time.Second},
		{kindError, 5, true, 16 * time.Second},
		{kindError, 6, true, 30 * time.Second},
		{kindError, 1 << 40, true, 30 * time.Second},
		{kindError, -5, false, time.Second},
		{kindPanic, 1, false, 0},
		{kindPanic, 2, false, 2 * time.Second},
		{kindTimeout, 1, true, 0},
		{kindTimeout, 9, false, 5 * time.Second},
		{kindTooLarge, 0, false, time.Minute},
		{kindPrivate, 0, true, time.Minute},
	} {
		if got := s.coolDownAfter(&failure{Kind: test.kind, Count: test.count}, test.servable); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
	s.coolDown = time.Hour
	if got := s.coolDownAfter(&failure{Kind: kindError, Count: 3}, false); got != time.Hour {
		t.Errorf("longer than the bound by option: got %v, want 1h", got)
	}
}

// TestFailureIsRememberedLonger than it cools down, so that the count survives.
func TestFailureIsRememberedLonger(t *testing.T) {
	for _, coolDown := range []time.Duration{0, time.Second, time.Minute} {
		sf := (&failure{Kind: kindError}).store(coolDown)
		if sf.CoolDown != coolDown || sf.Memory < 2*coolDown || sf.Memory < minMemory {
			t.Errorf("cool-down %v: %v, remembered for %v", coolDown, sf.CoolDown, sf.Memory)
		}
	}
}

// FuzzDecodeFailure: whatever lies in the store is a failure with a kind, or
// none, and can be told to a caller.
func FuzzDecodeFailure(f *testing.F) {
	s := settings{coolDown: time.Second, errors: map[string]error{"down": errors.New("down")}}
	f.Add((&failure{Kind: kindError, Text: "x", Names: []string{"down"}, Count: 3}).store(0).Data)
	f.Add([]byte(`{"kind":"later","count":-1}`))
	f.Add([]byte(`{"kind":"error","count":9223372036854775807}`))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		kept := decodeFailure(b)
		if kept == nil {
			return
		}
		if kept.Kind == "" || kept.Count < 0 {
			t.Fatalf("got %+v", kept)
		}
		if err := s.errOf(kept, time.Second); !errors.Is(err, ErrLoadFailed) || err.Error() == "" {
			t.Fatalf("got %v", err)
		}
		if d := s.coolDownAfter(kept, true); d < 0 || d > max(maxCoolDownStale, s.uncacheable) {
			t.Fatalf("cool-down %v", d)
		}
		if next := s.failureOf(kindError, errors.New("x"), kept.Count); next.Count <= 0 {
			t.Fatalf("the next in a row is number %d", next.Count)
		}
	})
}
