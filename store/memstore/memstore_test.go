package memstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herdgate/herdgate/store"
)

const long = time.Minute

// put stores an entry of n bytes.
func put(t testing.TB, s *Store, key string, n int, ttl time.Duration) {
	t.Helper()
	if err := s.Put(context.Background(), key, store.NewToken(), make([]byte, n), ttl); err != nil {
		t.Fatal(err)
	}
}

func has(s *Store, key string) bool {
	_, err := s.Get(context.Background(), key)
	return err == nil
}

// count returns what the shards really hold.
func (s *Store) count() (records int, entries, bytes int64) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		records += len(sh.records)
		for pos, r := range sh.ring {
			if r.pos != pos || sh.records[r.key] != r {
				panic("ring and records differ")
			}
			if r.filled {
				entries++
				bytes += size(r.key, r.entry.Value)
			}
		}
		sh.mu.Unlock()
	}
	return records, entries, bytes
}

// TestNothingIsLeftBehind: who has come and gone leaves no trace.
func TestNothingIsLeftBehind(t *testing.T) {
	ctx := t.Context()
	s := New(nil)
	for i := range 100 {
		req := store.Request{Key: fmt.Sprint(i), Token: store.NewToken(), TTL: long}
		_, stop, _ := s.Watch(ctx, req.Key)
		has(s, req.Key)
		l, err := s.Acquire(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		waiting := req
		waiting.Token = store.NewToken()
		if _, err := s.Enqueue(ctx, waiting); err == nil {
			t.Fatal("the lease was granted twice")
		}
		if err := errors.Join(s.Leave(ctx, waiting), s.Release(ctx, l), s.Delete(ctx, req.Key)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Renew(ctx, l, long); !errors.Is(err, store.ErrLost) {
			t.Fatal(err)
		}
		stop()
		stop()
	}
	if records, _, _ := s.count(); records != 0 {
		t.Errorf("%d records were left behind", records)
	}
	if s.entries.Load() != 0 || s.bytes.Load() != 0 {
		t.Errorf("%d entries of %d bytes are counted in an empty store", s.entries.Load(), s.bytes.Load())
	}
}

func TestHugeTimesToLive(t *testing.T) {
	s := New(nil)
	put(t, s, "entry", 10, math.MaxInt64)
	if !has(s, "entry") {
		t.Error("an entry for ever was gone at once")
	}
	l, err := s.Acquire(t.Context(), store.Request{Key: "lease", Token: store.NewToken(), TTL: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Error(err)
	}
}

// TestFencesGrowOverARestart: the resource remembers the fences of a process
// that is no more.
func TestFencesGrowOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := uint64(0)
		for range 3 {
			s := New(nil)
			for range 1000 {
				l, err := s.Acquire(t.Context(), store.Request{Key: "key", Token: store.NewToken(), TTL: long, Fence: true})
				if err != nil {
					t.Fatal(err)
				}
				if l.Fence <= last {
					t.Fatalf("after fence %d came %d", last, l.Fence)
				}
				last = l.Fence
				if err := s.Release(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second) // the least a restart takes
		}
	})
}

// TestDeadPlacesAreDropped: who has not asked again for longer than QueueTTL is
// passed over, and costs nothing.
func TestDeadPlacesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), New(nil)
		request := func() store.Request { return store.Request{Key: "key", Token: store.NewToken(), TTL: long} }
		l, err := s.Acquire(ctx, request())
		if err != nil {
			t.Fatal(err)
		}
		dead, alive := request(), request()
		_, _ = s.Enqueue(ctx, dead)
		time.Sleep(store.QueueTTL + 1)
		_, _ = s.Enqueue(ctx, alive)
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Enqueue(ctx, alive); err != nil {
			t.Errorf("the dead is waited for: %v", err)
		}
	})
}

// TestEventsCarryAll: in one process nothing is too large to travel along.
func TestEventsCarryAll(t *testing.T) {
	ctx, s, value := t.Context(), New(nil), make([]byte, 1<<20)
	events, stop, _ := s.Watch(ctx, "key")
	defer stop()
	claim := func() store.Lease {
		a, err := s.Claim(ctx, store.Request{Key: "key", Token: store.NewToken(), TTL: long})
		if err != nil || a.State != store.Granted {
			t.Fatalf("%v, error %v", a.State, err)
		}
		return a.Lease
	}
	failed := claim()
	if err := s.Yield(ctx, failed, store.Failure{Data: []byte("boom"), Memory: long}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Grant != failed.Grant || string(e.Failure.Data) != "boom" {
		t.Errorf("the failure was told as %+v", e)
	}
	filled := claim()
	if err := s.Fill(ctx, filled, value, long); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Grant != filled.Grant || e.Entry.Version != filled.Token || len(e.Entry.Value) != len(value) {
		t.Errorf("the value was told as one of %d bytes by %d", len(e.Entry.Value), e.Grant)
	}
}

// TestLaw11FailureIsToldAgain: a claim whose reply was lost is told the same
// failure when it is repeated, so that the count of failures goes on.
func TestLaw11FailureIsToldAgain(t *testing.T) {
	ctx, s := t.Context(), New(nil)
	req := store.Request{Key: "key", Token: store.NewToken(), TTL: long}
	a, err := s.Claim(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Yield(ctx, a.Lease, store.Failure{Data: []byte("boom"), Memory: long}); err != nil {
		t.Fatal(err)
	}
	req.Token = store.NewToken()
	for range 2 {
		if a, err = s.Claim(ctx, req); err != nil || a.State != store.Granted || string(a.Failure.Data) != "boom" {
			t.Fatalf("%+v, error %v", a, err)
		}
	}
}

// TestHolderIsTimed: the time that is left becomes less.
func TestHolderIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), New(nil)
		time.Sleep(long)
		if _, err := s.Acquire(ctx, store.Request{Key: "key", Token: store.NewToken(), TTL: long}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_, err := s.Acquire(ctx, store.Request{Key: "key", Token: store.NewToken(), TTL: long})
		var held *store.HeldError
		if !errors.As(err, &held) || held.Holder.Left != long-time.Second {
			t.Errorf("got error %v, %+v", err, held)
		}
	})
}

var global = New(nil)

// TestGlobalStoreInABubble: a store made for the whole process serves tests
// with a clock of their own.
func TestGlobalStoreInABubble(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			key := store.NewToken().String()
			_, stop, _ := global.Watch(t.Context(), key)
			defer stop()
			put(t, global, key, 10, time.Second)
			if !has(global, key) {
				t.Error("the entry is missing")
			}
			time.Sleep(time.Second)
			if has(global, key) {
				t.Error("the entry did not expire")
			}
		})
	}
}

// TestManyAtOnce lets everything happen at once in a store that is too small,
// and counts afterwards.
func TestManyAtOnce(t *testing.T) {
	ctx := t.Context()
	s := New(&Options{MaxEntries: 50, MaxBytes: 20_000})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 3000 {
				manyAtOnceStep(ctx, s)
			}
		})
	}
	callers.Wait()
	_, entries, bytes := s.count()
	if entries != s.entries.Load() || bytes != s.bytes.Load() {
		t.Errorf("%d entries of %d bytes are counted as %d of %d", entries, bytes, s.entries.Load(), s.bytes.Load())
	}
	if s.full() {
		t.Errorf("%d entries of %d bytes are over the bounds", entries, bytes)
	}
}

func manyAtOnceStep(ctx context.Context, s *Store) {
	key := fmt.Sprint(rand.IntN(100))
	req := store.Request{Key: key, Token: store.NewToken(), TTL: time.Duration(1 + rand.IntN(int(time.Millisecond)))}
	switch rand.IntN(8) {
	case 0:
		_ = s.Delete(ctx, key)
	case 1:
		_ = s.Expire(ctx, key)
	case 2:
		_, _ = s.Enqueue(ctx, req)
		_ = s.Leave(ctx, req)
	case 3:
		_, stop, _ := s.Watch(ctx, key)
		stop()
	case 4:
		_, _ = s.Break(ctx, key)
	case 5:
		has(s, key)
	default:
		e, _ := s.Get(ctx, key)
		req.Seen = e.Version
		if a, _ := s.Claim(ctx, req); a.State == store.Granted {
			_ = s.Fill(ctx, a.Lease, make([]byte, rand.IntN(1000)), req.TTL)
		}
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	s := New(nil)
	put(t, s, "key", 10, long)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Get(ctx, "key") }); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Get(ctx, "none") }); n != 0 {
		t.Errorf("a miss allocates %v times", n)
	}
}
