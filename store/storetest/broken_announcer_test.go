package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
)

// tells announces what it makes of an announcement, if anything.
type tells struct {
	*mem
	change func(store.Change) (store.Change, bool)
}

func (s tells) Announce(ctx context.Context, f func(store.Change)) (func(), error) {
	return s.mem.Announce(ctx, func(c store.Change) {
		if c, ok := s.change(c); ok {
			f(c)
		}
	})
}

// tellsLate begins to announce when Announce has returned already.
type tellsLate struct{ *mem }

func (s tellsLate) Announce(ctx context.Context, f func(store.Change)) (func(), error) {
	begin := time.AfterFunc(10*time.Millisecond, func() {
		stop, _ := s.mem.Announce(ctx, f)
		context.AfterFunc(ctx, stop)
	})
	context.AfterFunc(ctx, func() { begin.Stop() })
	return func() {}, nil
}

// tellsOnForever does not know how to stop.
type tellsOnForever struct{ *mem }

func (s tellsOnForever) Announce(ctx context.Context, f func(store.Change)) (func(), error) {
	_, err := s.mem.Announce(ctx, f)
	return func() {}, err
}

// tellsWithContext stops with the context of Announce.
type tellsWithContext struct{ *mem }

func (s tellsWithContext) Announce(ctx context.Context, f func(store.Change)) (func(), error) {
	stop, err := s.mem.Announce(ctx, f)
	context.AfterFunc(ctx, stop)
	return stop, err
}

// tellsNothing says that it cannot announce.
type tellsNothing struct{ *mem }

func (s tellsNothing) Announce(context.Context, func(store.Change)) (func(), error) {
	return nil, fmt.Errorf("announcements: %w", errors.ErrUnsupported)
}
