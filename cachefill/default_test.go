package cachefill_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/herdgate/herdgate/cachefill"
)

// useDefault makes s the default store and puts a new one in its place when
// the test ends.
func useDefault(t *testing.T, o *cachefill.Options[any]) {
	t.Helper()
	if err := cachefill.SetDefault(t.Context(), newStore(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cachefill.SetDefault(context.Background(), newStore(), nil); err != nil {
			t.Errorf("SetDefault: %v", err)
		}
	})
}

func value[V any](v V) cachefill.Loader[V] {
	return func(context.Context) (V, error) { return v, nil }
}

func TestDefaultGetOfManyTypes(t *testing.T) {
	useDefault(t, nil)
	type page struct{ Title string }
	for range 2 {
		if v, err := cachefill.Get(t.Context(), "int", value(1)); v != 1 || err != nil {
			t.Errorf("Get = %v, %v, want 1", v, err)
		}
		if v, err := cachefill.Get(t.Context(), "page", value(page{"Home"})); v.Title != "Home" || err != nil {
			t.Errorf("Get = %v, %v, want Home", v, err)
		}
		if v, err := cachefill.Get(t.Context(), "pointer", value(&page{"Home"})); v == nil || v.Title != "Home" || err != nil {
			t.Errorf("Get = %v, %v, want Home", v, err)
		}
	}
	if _, err := cachefill.Get[int](t.Context(), "int", nil); !errors.Is(err, cachefill.ErrNilLoader) {
		t.Errorf("Get without a loader: %v, want ErrNilLoader", err)
	}
}

// TestDefaultRefusesAnotherType, wherever it meets it.
func TestDefaultRefusesAnotherType(t *testing.T) {
	t.Run("in the store", func(t *testing.T) {
		useDefault(t, nil)
		if _, err := cachefill.Get(t.Context(), "key", value(1)); err != nil {
			t.Fatal(err)
		}
		until(t, "ErrType", func() bool { // once it is stored
			_, err := cachefill.Get(t.Context(), "key", func(context.Context) (string, error) { return "", errors.New("loaded") })
			return errors.Is(err, cachefill.ErrType)
		})
		if v, err := cachefill.Get(t.Context(), "key", value(2)); v != 1 || err != nil {
			t.Errorf("Get of the right type = %v, %v, want 1", v, err)
		}
	})
	t.Run("near", func(t *testing.T) {
		useDefault(t, &cachefill.Options[any]{Near: 10, NearTTL: time.Hour})
		for range 2 {
			if v, err := cachefill.Get(t.Context(), "key", value(1)); v != 1 || err != nil {
				t.Errorf("Get = %v, %v, want 1", v, err)
			}
		}
		until(t, "ErrType", func() bool {
			_, err := cachefill.Get(t.Context(), "key", value("text"))
			return errors.Is(err, cachefill.ErrType)
		})
	})
	t.Run("in flight", func(t *testing.T) {
		useDefault(t, nil)
		g := newGate()
		var wg sync.WaitGroup
		wg.Go(func() {
			if v, err := cachefill.Get(t.Context(), "key", g.load); v != 1 || err != nil {
				t.Errorf("Get = %v, %v, want 1", v, err)
			}
		})
		g.begun(t, 1)
		wg.Go(func() {
			_, err := cachefill.Get(t.Context(), "key", value("text"))
			if !errors.Is(err, cachefill.ErrType) {
				t.Errorf("Get of another type: %v, want ErrType", err)
			}
		})
		close(g.open)
		wg.Wait()
	})
}

func TestSetDefaultWantsNoCodec(t *testing.T) {
	for name, o := range map[string]*cachefill.Options[any]{
		"Codec": {Codec: cachefill.JSON[any]()},
		"Clone": {Clone: func(v any) any { return v }},
		"TTL":   {TTL: -1},
	} {
		if err := cachefill.SetDefault(t.Context(), newStore(), o); err == nil || !strings.Contains(err.Error(), "Options."+name) {
			t.Errorf("SetDefault: %v, want an error that names %s", err, name)
		}
	}
}

// TestSetDefaultDrainsTheOldOne: a load that runs there is waited for.
func TestSetDefaultDrainsTheOldOne(t *testing.T) {
	useDefault(t, nil)
	g := newGate()
	var wg sync.WaitGroup
	wg.Go(func() {
		if v, err := cachefill.Get(t.Context(), "key", g.load); v != 1 || err != nil {
			t.Errorf("Get at the old default = %v, %v, want 1", v, err)
		}
	})
	g.begun(t, 1)
	replaced := make(chan error, 1)
	go func() { replaced <- cachefill.SetDefault(context.Background(), newStore(), nil) }()
	until(t, "the new default", func() bool {
		v, err := cachefill.Get(t.Context(), "other", value(1))
		return v == 1 && err == nil
	})
	select {
	case err := <-replaced:
		t.Errorf("SetDefault returned %v while a load was running", err)
	default:
	}
	close(g.open)
	if err := <-replaced; err != nil {
		t.Errorf("SetDefault: %v", err)
	}
	wg.Wait()
}

// TestDefaultInMemoryWarnsOnce, also if many ask at once.
func TestDefaultInMemoryWarnsOnce(t *testing.T) {
	useDefault(t, nil)
	cachefill.ForgetDefault(t)
	var log bytes.Buffer // its handler has a lock
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := cachefill.Get(t.Context(), "key", value(1)); v != 1 || err != nil {
				t.Errorf("Get = %v, %v, want 1", v, err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(log.String(), "in memory"); n != 1 {
		t.Errorf("warned %d times, want once: %s", n, &log)
	}
}
