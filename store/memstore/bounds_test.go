package memstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
)

func TestEntriesAreBounded(t *testing.T) {
	for _, most := range []int{1, 10, 100} {
		s := New(&Options{MaxEntries: most})
		for i := range 1000 {
			key := fmt.Sprint(i)
			put(t, s, key, 10, long)
			if _, entries, _ := s.count(); entries > int64(most) {
				t.Fatalf("%d entries, at most %d are allowed", entries, most)
			}
			if !has(s, key) {
				t.Fatal("the entry just written was dropped")
			}
		}
		if records, entries, _ := s.count(); entries != int64(most) || records != most {
			t.Errorf("%d entries in %d records, there is room for %d", entries, records, most)
		}
	}
}

func TestBytesAreBounded(t *testing.T) {
	const most = 100_000
	s := New(&Options{MaxBytes: most})
	for i := range 1000 {
		put(t, s, fmt.Sprint(i), rand.IntN(most/2), long)
		if _, _, bytes := s.count(); bytes > most {
			t.Fatalf("%d bytes, at most %d are allowed", bytes, most)
		}
	}
	if err := s.Put(t.Context(), "huge", store.NewToken(), make([]byte, most), long); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a value that fits nowhere: got error %v", err)
	}
	put(t, s, "huge", most-int(size("huge", nil)), long)
	if _, entries, bytes := s.count(); entries != 1 || bytes != most {
		t.Errorf("%d entries of %d bytes", entries, bytes)
	}
}

func TestUnbounded(t *testing.T) {
	s := New(&Options{MaxEntries: -1, MaxBytes: -1})
	for i := range defaultMaxEntries + 1 {
		put(t, s, fmt.Sprint(i), 0, long)
	}
	if _, entries, _ := s.count(); entries != defaultMaxEntries+1 {
		t.Errorf("%d entries", entries)
	}
}

// TestWhatIsReadStays: the store drops what nobody reads.
func TestWhatIsReadStays(t *testing.T) {
	s := New(&Options{MaxEntries: 1000})
	for i := range 100 {
		put(t, s, fmt.Sprint("hot", i), 0, long)
	}
	for i := range 20_000 {
		put(t, s, fmt.Sprint("cold", i), 0, long)
		if i%100 == 0 {
			for n := range 100 {
				has(s, fmt.Sprint("hot", n))
			}
		}
	}
	hot := 0
	for i := range 100 {
		if has(s, fmt.Sprint("hot", i)) {
			hot++
		}
	}
	if hot < 90 {
		t.Errorf("of 100 entries that are read, %d stayed", hot)
	}
}

// TestLeasesAreNeverDropped: a full store drops entries and nothing else.
func TestLeasesAreNeverDropped(t *testing.T) {
	ctx := t.Context()
	s := New(&Options{MaxEntries: 10})
	claim := func(key string) store.Answer {
		a, err := s.Claim(ctx, store.Request{Key: key, Token: store.NewToken(), TTL: long})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	leases := map[string]store.Lease{}
	for i := range 100 {
		key := fmt.Sprint("lease", i)
		leases[key] = claim(key).Lease
		failed := claim(fmt.Sprint("failed", i)).Lease
		if err := s.Yield(ctx, failed, store.Failure{Data: []byte("boom"), CoolDown: long}); err != nil {
			t.Fatal(err)
		}
	}
	waiting := store.Request{Key: "lease0", Token: store.NewToken(), TTL: long}
	if _, err := s.Enqueue(ctx, waiting); !errors.Is(err, store.ErrHeld) {
		t.Fatal(err)
	}
	for i := range 10_000 {
		put(t, s, fmt.Sprint(i), 10, long)
	}
	for i := range 100 {
		if a := claim(fmt.Sprint("failed", i)); a.State != store.Failed {
			t.Fatalf("a failure was forgotten: %v", a.State)
		}
	}
	for key, l := range leases {
		if err := s.Release(ctx, l); err != nil {
			t.Fatalf("the lease on %s: %v", key, err)
		}
	}
	if _, err := s.Enqueue(ctx, waiting); err != nil {
		t.Errorf("the queue was forgotten: %v", err)
	}
}

// TestWhatIsOverIsSwept: writes of other keys remove what has expired, so that
// a store of keys that are never asked for again does not grow.
func TestWhatIsOverIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		for i := range 10_000 {
			key := fmt.Sprint("old", i)
			if i%2 == 0 {
				put(t, s, key, 10, time.Second)
				continue
			}
			if _, err := s.Acquire(t.Context(), store.Request{Key: key, Token: store.NewToken(), TTL: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		for i := range 10_000 {
			put(t, s, fmt.Sprint("new", i), 10, long)
		}
		if records, entries, _ := s.count(); entries != 10_000 || records > 10_100 {
			t.Errorf("%d entries in %d records", entries, records)
		}
	})
}
