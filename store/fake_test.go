package store_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

const long = time.Minute

// plain is a store that can do what it must and nothing else. It records what
// it was asked.
type plain struct {
	mem   *memstore.Store
	calls []string
	fail  map[string]error            // by method: the error of its next call
	after map[string]func(key string) // by method: what happens after its next call
}

func newPlain() *plain {
	return &plain{mem: memstore.New(&memstore.Options{MaxBytes: 1 << 10}), fail: map[string]error{}, after: map[string]func(string){}}
}

var errDown = errors.New("the server is down")

// called records a call and returns the error it must fail with.
func (p *plain) called(name string) error {
	p.calls = append(p.calls, name)
	err := p.fail[name]
	delete(p.fail, name)
	return err
}

// done lets happen what was planned for after a call.
func (p *plain) done(name, key string) {
	if f := p.after[name]; f != nil {
		delete(p.after, name)
		f(key)
	}
}

func (p *plain) count(name string) int {
	n := 0
	for _, c := range p.calls {
		if c == name {
			n++
		}
	}
	return n
}

func (p *plain) Get(ctx context.Context, key string) (store.Entry, error) {
	return p.mem.Get(ctx, key)
}

func (p *plain) Claim(ctx context.Context, req store.Request) (store.Answer, error) {
	if err := p.called("Claim"); err != nil {
		return store.Answer{}, err
	}
	defer p.done("Claim", req.Key)
	return p.mem.Claim(ctx, req)
}

func (p *plain) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if err := p.called("Renew"); err != nil {
		return store.Lease{}, err
	}
	return p.mem.Renew(ctx, l, ttl)
}

func (p *plain) Fill(ctx context.Context, l store.Lease, value []byte, ttl time.Duration) error {
	if err := p.called("Fill"); err != nil {
		return err
	}
	return p.mem.Fill(ctx, l, value, ttl)
}

func (p *plain) Yield(ctx context.Context, l store.Lease, f store.Failure) error {
	if err := p.called("Yield"); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.mem.Yield(ctx, l, f)
}

func (p *plain) Delete(ctx context.Context, key string) error {
	if err := p.called("Delete"); err != nil {
		return err
	}
	defer p.done("Delete", key)
	return p.mem.Delete(ctx, key)
}

// wrapper leaves keys and results alone, so it unwraps.
type wrapper struct{ inner any }

func (w wrapper) Unwrap() any { return w.inner }

// watcher fails or succeeds to watch.
type watcher struct{ err error }

func (w watcher) Watch(context.Context, string) (<-chan store.Event, func(), error) {
	return make(chan store.Event), func() {}, w.err
}

// equalCalls reports whether exactly these methods were called.
func (p *plain) equalCalls(want ...string) bool { return slices.Equal(p.calls, want) }
