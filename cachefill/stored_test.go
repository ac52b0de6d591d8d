package cachefill_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
)

// plant stores bytes under key as the default namespace has it.
func plant(t testing.TB, s store.Cache, key, value string) {
	t.Helper()
	if err := store.Put(t.Context(), s, "fill:"+key, store.NewToken(), []byte(value), time.Hour); err != nil {
		t.Fatal(err)
	}
}

// planted returns the bytes under key.
func planted(t testing.TB, s store.Cache, key string) string {
	t.Helper()
	e, err := s.Get(t.Context(), "fill:"+key)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value)
}

const newer = "hg\x02 of the next release"

// TestNewerFormatIsNeverOverwritten: the older half of a rolling deploy loads
// for itself, keeps the value near, and leaves the store alone.
func TestNewerFormatIsNeverOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCache(t, s, &cachefill.Options[int]{Near: 10, NearTTL: time.Second, Stale: time.Minute})
		plant(t, s, "key", newer)
		var loads counter
		for i := range 4 {
			r, err := c.Fetch(t.Context(), "key", loads.after(10*time.Millisecond, nil))
			if want := 1 + i/2; r.Value != want || err != nil {
				t.Errorf("Fetch %d = %+v, %v, want %d", i, r, err, want)
			}
			time.Sleep(600 * time.Millisecond)
		}
		if got := planted(t, s, "key"); got != newer {
			t.Errorf("the entry is now %q", got)
		}
		if got := c.Stats(); got.Unreadable != 0 || got.Loads != 2 {
			t.Errorf("%d unreadable, %d loads, want 0 and 2", got.Unreadable, got.Loads)
		}
		time.Sleep(time.Second)
		if r, err := c.Peek(t.Context(), "key"); !errors.Is(err, cachefill.ErrMiss) {
			t.Errorf("Peek = %+v, %v, want ErrMiss", r, err)
		}
		if err := c.Invalidate(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "fill:key"); !errors.Is(err, store.ErrMiss) {
			t.Errorf("after Invalidate: %v, want ErrMiss: it reaches both releases", err)
		}
	})
}

// TestNewerFormatMetOnTheWay: the entry was not there at the look, and is at
// the claim, or arrives while the flight waits.
func TestNewerFormatMetOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCache[int](t, s, nil)
		token := store.NewToken()
		a, err := s.Claim(t.Context(), store.Request{Key: "fill:key", Token: token, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _ = s.Fill(t.Context(), a.Lease, []byte(newer), time.Hour) })
		var loads counter
		if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
			t.Errorf("Get = %v, %v, want an own load", v, err)
		}
		synctest.Wait()
		if got := planted(t, s, "key"); got != newer {
			t.Errorf("the entry is now %q", got)
		}
	})
}

// TestUnreadableIsAMiss: counted, told, and overwritten by the next load.
func TestUnreadableIsAMiss(t *testing.T) {
	made := newStore()
	text := newCache[string](t, made, nil)
	if err := text.Set(t.Context(), "key", "text"); err != nil {
		t.Fatal(err)
	}
	gob := newCache(t, made, &cachefill.Options[int]{Codec: cachefill.Gob[int]()})
	if err := gob.Set(t.Context(), "gob", 1); err != nil {
		t.Fatal(err)
	}
	closeCache(t, text)
	for name, value := range map[string]string{
		"nothing":       "",
		"foreign":       "O:8:\"stdClass\":0:{}",
		"cut":           planted(t, made, "key")[:9],
		"another type":  planted(t, made, "key"),
		"another codec": planted(t, made, "gob"),
		"bad payload":   "hg\x01\x00\x00\x00\x80\x80\x80\x80\x80\x01\x00\x04json\x03int{",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			var log eventLog
			c := newCache(t, s, &cachefill.Options[int]{OnEvent: log.add})
			plant(t, s, "key", value)
			if r, err := c.Peek(t.Context(), "key"); !errors.Is(err, cachefill.ErrMiss) {
				t.Errorf("Peek = %+v, %v, want ErrMiss", r, err)
			}
			var loads counter
			if v, err := c.Get(t.Context(), "key", loads.after(0, nil)); v != 1 || err != nil {
				t.Errorf("Get = %v, %v, want a load", v, err)
			}
			until(t, "the entry to be overwritten", func() bool {
				r, err := c.Peek(t.Context(), "key")
				return err == nil && r.Value == 1
			})
			events := log.of(cachefill.Unreadable)
			if n := c.Stats().Unreadable; n < 2 || len(events) != int(n) || events[0].Key != "key" || events[0].Err == nil {
				t.Errorf("%d unreadable, events %v", n, events)
			}
		})
	}
}

// TestUnreadableAndHeld: who may not load because another does, waits
// for that one, and never gets what cannot be read.
func TestUnreadableAndHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := newCache[int](t, s, nil), newCache[int](t, s, nil)
		plant(t, s, "key", "foreign")
		var loads counter
		got := make(chan int, 2)
		for _, c := range []*cachefill.Cache[int]{a, b} {
			go func() {
				v, _ := c.Get(context.Background(), "key", loads.after(time.Second, nil))
				got <- v
			}()
		}
		if x, y := <-got, <-got; x != 1 || y != 1 || loads.n.Load() != 1 {
			t.Errorf("got %v and %v after %d loads, want one load for both", x, y, loads.n.Load())
		}
	})
}
