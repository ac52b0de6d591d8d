package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
)

func TestTokensDiffer(t *testing.T) {
	seen := map[store.Token]bool{{}: true}
	for range 10_000 {
		token := store.NewToken()
		if seen[token] {
			t.Fatalf("token %v came twice", token)
		}
		seen[token] = true
	}
	if !(store.Token{}).IsZero() || store.NewToken().IsZero() {
		t.Error("IsZero is wrong")
	}
	if got := (store.Token{0xab, 15: 0x01}).String(); got != "ab"+strings.Repeat("0", 28)+"01" {
		t.Errorf("got %s", got)
	}
}

func TestRequestValidate(t *testing.T) {
	ok := store.Request{Token: store.NewToken(), TTL: time.Nanosecond} // the empty key is legal
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
	for field, req := range map[string]store.Request{
		"Token":    {TTL: long},
		"TTL is 0": {Token: ok.Token},
		"-1s":      {Token: ok.Token, TTL: -time.Second},
	} {
		if err := req.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got error %v", field, err)
		}
	}
}

func TestHeldErrorMatches(t *testing.T) {
	err := fmt.Errorf("order 42: %w", &store.HeldError{Holder: store.Holder{Note: store.Note{Owner: "billing", Reason: "monthly run"}}})
	if !errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrMiss) || errors.Is(err, store.ErrLost) {
		t.Errorf("%v matches the wrong sentinels", err)
	}
	if !strings.Contains(err.Error(), "billing") || !strings.Contains(err.Error(), "monthly run") {
		t.Errorf("the error says %q", err)
	}
	var held *store.HeldError
	if !errors.As(err, &held) {
		t.Error("the holder cannot be found")
	}
}

func TestMissErrorMatches(t *testing.T) {
	err := fmt.Errorf("home: %w", &store.MissError{Answer: store.Answer{State: store.Failed}})
	if !errors.Is(err, store.ErrMiss) || errors.Is(err, store.ErrHeld) {
		t.Errorf("%v matches the wrong sentinels", err)
	}
	if !strings.Contains(err.Error(), "failed") {
		t.Errorf("the error says %q", err)
	}
}

func TestStatesHaveNames(t *testing.T) {
	for state, want := range map[store.State]string{
		0: "none", store.Found: "found", store.Granted: "granted", store.Held: "held", store.Failed: "failed", 99: "invalid",
	} {
		if got := state.String(); got != want {
			t.Errorf("state %d is %q, want %q", state, got, want)
		}
	}
}
