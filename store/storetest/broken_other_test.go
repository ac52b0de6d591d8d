package storetest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// These stores break what is promised of wake-ups, failures, bytes, times and
// queues.

// lateWatch subscribes when Watch has returned already.
type lateWatch struct{ *mem }

func (s lateWatch) Watch(ctx context.Context, key string) (<-chan store.Event, func(), error) {
	events := make(chan store.Event, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		inner, stop, _ := s.mem.Watch(ctx, key)
		defer stop()
		for {
			select {
			case e := <-inner:
				events <- e
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, cancel, nil
}

// events passes on what it makes of the events.
type events struct {
	*mem
	change func(*store.Event)
}

func (s events) Watch(ctx context.Context, key string) (<-chan store.Event, func(), error) {
	inner, stop, err := s.mem.Watch(ctx, key)
	changed, done := make(chan store.Event, 100), make(chan struct{})
	go func() {
		for {
			select {
			case e := <-inner:
				s.change(&e)
				changed <- e
			case <-done:
				return
			}
		}
	}()
	return changed, func() { stop(); close(done) }, err
}

// hides shows nothing but the two roles.
type hides struct {
	store.Cache
	acquire interface {
		Acquire(context.Context, store.Request) (store.Lease, error)
		Release(context.Context, store.Lease) error
	}
}

func (s hides) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	return s.acquire.Acquire(ctx, req)
}

func (s hides) Release(ctx context.Context, l store.Lease) error { return s.acquire.Release(ctx, l) }

// keepsNothing forgets failures and stale marks.
type keepsNothing struct{ *mem }

func (s keepsNothing) Yield(ctx context.Context, l store.Lease, _ store.Failure) error {
	return s.mem.Yield(ctx, l, store.Failure{})
}

func (s keepsNothing) Expire(context.Context, string) error { return nil }

// keepsTooMuch remembers for ever, and keeps failures over a Delete.
type keepsTooMuch struct {
	*mem
	failures *sync.Map // by key
}

func (s keepsTooMuch) Yield(ctx context.Context, l store.Lease, f store.Failure) error {
	f.Memory += long
	if len(f.Data) == 0 {
		f.Data = []byte("none")
	}
	s.failures.Store(l.Key, f)
	return s.mem.Yield(ctx, l, f)
}

func (s keepsTooMuch) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	return s.mem.Fill(ctx, l, value, ttl+long)
}

func (s keepsTooMuch) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	a, err := s.mem.Claim(ctx, req)
	if f, ok := s.failures.Load(req.Key); ok && a.State == store.Granted {
		a.Failure = f.(store.Failure)
	}
	return a, err
}

// deaf renews nothing.
type deaf struct{ *mem }

func (s deaf) Renew(_ context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	l.Expires = time.Now().Add(ttl)
	return l, nil
}

func (s deaf) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	req.Note = store.Note{}
	req.TTL = max(req.TTL/2, 1)
	l, err := s.mem.Acquire(ctx, req)
	l.Expires = time.Now().Add(2 * req.TTL)
	return l, err
}

func (s deaf) RenewAll(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Lease, []error) {
	renewed, errs := make([]store.Lease, len(leases)), make([]error, len(leases))
	for i, l := range leases {
		if renewed[i], errs[i] = s.mem.Renew(ctx, l, ttl); errs[i] != nil {
			for ; i < len(leases); i++ {
				errs[i] = store.ErrLost
			}
			break
		}
	}
	return renewed, errs
}

// forces ends leases that are not the caller's.
type forces struct{ *mem }

func (s forces) Release(ctx context.Context, l store.Lease) error {
	_, err := s.mem.Break(ctx, l.Key)
	return err
}

func (s forces) Yield(ctx context.Context, l store.Lease, _ store.Failure) error {
	_, err := s.mem.Break(ctx, l.Key)
	return err
}

// cKeys takes keys for C strings, and values too, counts them wrong and cannot
// tell whose they are.
type cKeys struct{ *mem }

func cut(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

func (s cKeys) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	req.Key = cut(req.Key)
	return s.mem.Claim(ctx, req)
}

func (s cKeys) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.mem.Get(ctx, cut(key))
}

func (s cKeys) GetAll(ctx context.Context, keys []string) ([]store.Entry, []error) {
	return s.mem.GetAll(ctx, keys[:len(keys)/2])
}

func (s cKeys) Shard(key string) string { return store.NewToken().String() }

func (s cKeys) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	l.Key = cut(l.Key)
	return s.mem.Fill(ctx, l, []byte(cut(string(value))), ttl)
}

func (s cKeys) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	req.Key = cut(req.Key)
	return s.mem.Acquire(ctx, req)
}

// remembers answers reads from a copy of its own.
type remembers struct {
	*mem
	copies *sync.Map
}

func (s remembers) Get(ctx context.Context, key string) (store.Entry, error) {
	if e, ok := s.copies.Load(key); ok {
		return e.(store.Entry), nil
	}
	e, err := s.mem.Get(ctx, key)
	if err == nil {
		s.copies.Store(key, e)
	}
	return e, err
}

// deletesLater returns from Delete before the entry is gone.
type deletesLater struct{ *mem }

func (s deletesLater) Delete(ctx context.Context, key string) error {
	time.AfterFunc(time.Millisecond, func() { _ = s.mem.Delete(ctx, key) })
	return nil
}

// pushesIn gives the queue no place, or the newest the first.
type pushesIn struct{ *mem }

func (s pushesIn) Enqueue(ctx context.Context, req store.Request) (store.Lease, error) {
	return s.mem.Acquire(ctx, req)
}

// forgetsPlaces counts the life of a place from when it was first asked for.
type forgetsPlaces struct {
	*mem
	mu    sync.Mutex // protects since
	since map[store.Token]time.Time
}

func (s *forgetsPlaces) Enqueue(ctx context.Context, req store.Request) (store.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.since[req.Token]
	if s.since == nil {
		s.since = map[store.Token]time.Time{}
	}
	if !ok {
		s.since[req.Token] = time.Now()
	}
	if ok && time.Since(since) > store.QueueTTL {
		return s.mem.Acquire(ctx, req)
	}
	return s.mem.Enqueue(ctx, req)
}

// neverLeaves keeps the places and leases of those who left, and lets the dead
// have the lease for as long as they asked for.
type neverLeaves struct{ *mem }

func (s neverLeaves) Leave(context.Context, store.Request) error { return nil }

func (s neverLeaves) Release(ctx context.Context, l store.Lease) error {
	events, stop, _ := s.mem.Watch(ctx, l.Key)
	defer stop()
	err := s.mem.Release(ctx, l)
	select {
	case e := <-events:
		if e.Lease.Grant != 0 {
			_, _ = s.mem.Renew(ctx, e.Lease, long)
		}
	default:
	}
	return err
}

// careless takes any request.
type careless struct{ *mem }

func (s careless) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	req.TTL = max(req.TTL, time.Second)
	return s.mem.Claim(ctx, req)
}

func (s careless) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	req.TTL = max(req.TTL, time.Second)
	return s.mem.Acquire(ctx, req)
}

func (s careless) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	if len(value) >= tooLarge {
		_ = s.mem.Yield(ctx, l, store.Failure{})
		return store.ErrTooLarge
	}
	return s.mem.Fill(ctx, l, value, max(ttl, time.Second))
}

// seconds counts whole seconds, of which none mean for ever and many are taken
// for a date long past.
type seconds struct{ *mem }

func counted(ttl time.Duration) time.Duration {
	switch {
	case ttl <= 0:
		return ttl
	case ttl < time.Second:
		return 1 << 62
	case ttl > 30*24*time.Hour:
		return 1
	}
	return ttl
}

func (s seconds) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	req.TTL = counted(req.TTL)
	return s.mem.Claim(ctx, req)
}

func (s seconds) Acquire(ctx context.Context, req store.Request) (store.Lease, error) {
	req.TTL = counted(req.TTL)
	return s.mem.Acquire(ctx, req)
}

func (s seconds) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	return s.mem.Fill(ctx, l, value, counted(ttl))
}
