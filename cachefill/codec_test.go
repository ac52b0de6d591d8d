package cachefill_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/herdgate/herdgate/cachefill"
)

type book struct {
	Title string
	Pages int
	Notes map[string][]byte
	Next  *book
}

var someBook = book{"Momo", 304, map[string][]byte{"a": {0, 255}, "": nil}, &book{Title: "Krabat"}}

// keeps checks that a value loaded by one cache is what another reads.
func keeps[V any](t *testing.T, o *cachefill.Options[V], values ...V) {
	t.Helper()
	s := newStore()
	a, b := newCache(t, s, o), newCache(t, s, o)
	for i, want := range values {
		key := string(rune('a' + i))
		v, err := a.Get(t.Context(), key, value(want))
		if err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("Get = %#v, %v, want %#v", v, err, want)
		}
		until(t, "the entry", func() bool { _, err := b.Peek(t.Context(), key); return err == nil })
		r, err := b.Fetch(t.Context(), key, nothing[V])
		if err != nil || !reflect.DeepEqual(r.Value, want) || r.Outcome != cachefill.Fresh {
			t.Errorf("Fetch elsewhere = %#v, %v, want %#v", r, err, want)
		}
	}
}

// nothing is a loader that is not to be called.
func nothing[V any](context.Context) (v V, err error) { return v, errors.New("loaded again") }

func TestCodecsKeepValues(t *testing.T) {
	t.Run("json", func(t *testing.T) { keeps(t, nil, someBook) })
	t.Run("json, compressed", func(t *testing.T) { keeps(t, &cachefill.Options[book]{CompressAbove: 1}, someBook) })
	t.Run("gob", func(t *testing.T) {
		keeps(t, &cachefill.Options[book]{Codec: cachefill.Gob[book]()}, book{"Momo", 304, nil, &book{Title: "Krabat"}})
	})
	t.Run("raw", func(t *testing.T) {
		keeps(t, &cachefill.Options[[]byte]{Codec: cachefill.Raw()}, []byte{}, []byte("hg\x01"), bytes.Repeat([]byte{7}, 1<<20))
	})
	t.Run("raw, compressed", func(t *testing.T) {
		keeps(t, &cachefill.Options[[]byte]{Codec: cachefill.Raw(), CompressAbove: 1}, []byte{}, []byte("x"), bytes.Repeat([]byte{7}, 1<<20))
	})
}

// TestZeroValuesAreValues: nothing in them says "none".
func TestZeroValuesAreValues(t *testing.T) {
	t.Run("numbers", func(t *testing.T) { keeps(t, nil, 0) })
	t.Run("strings", func(t *testing.T) { keeps(t, nil, "") })
	t.Run("structs", func(t *testing.T) { keeps(t, nil, book{}) })
	t.Run("pointers", func(t *testing.T) { keeps(t, nil, nil, &book{}) })
	t.Run("maps", func(t *testing.T) { keeps[map[string]int](t, nil, nil, map[string]int{}) })
	t.Run("any", func(t *testing.T) { keeps[any](t, nil, nil, "x", 1.5, []any{nil}) })
	t.Run("any near", func(t *testing.T) { keeps[any](t, &cachefill.Options[any]{Near: 10}, nil, "x") })
	t.Run("errors", func(t *testing.T) { keeps[error](t, nil, nil) })
	t.Run("gob numbers", func(t *testing.T) { keeps(t, &cachefill.Options[int]{Codec: cachefill.Gob[int]()}, 0, -1) })
}

// brittle is a codec that fails when it is told to.
type brittle struct {
	encode, decode error
	panics         bool
}

func (brittle) Name() string { return "brittle" }

func (b brittle) Encode(v string) ([]byte, error) {
	if b.panics {
		panic("encode " + v)
	}
	return []byte(v), b.encode
}

func (b brittle) Decode(data []byte) (string, error) {
	if b.panics {
		panic("decode " + string(data))
	}
	return string(data), b.decode
}

// TestValueThatCannotBeEncoded is returned to its callers, counted, told, and
// shared in the process; the key is not serialised.
func TestValueThatCannotBeEncoded(t *testing.T) {
	errOdd := errors.New("odd value")
	for name, codec := range map[string]brittle{"error": {encode: errOdd}, "panic": {panics: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log eventLog
				s := newStore()
				c := newCache(t, s, &cachefill.Options[string]{Codec: codec, OnEvent: log.add})
				for range 3 {
					if v, err := c.Get(t.Context(), "key", value("odd")); v != "odd" || err != nil {
						t.Errorf("Get = %q, %v, want the value", v, err)
					}
				}
				synctest.Wait()
				told := log.of(cachefill.NotStored)
				if n := c.Stats().NotStored; n != 1 || len(told) != 1 || codec.encode != nil && !errors.Is(told[0].Err, errOdd) {
					t.Errorf("%d not stored, events %v, want one", n, told)
				}
				if err := c.Set(t.Context(), "key", "odd"); err == nil || codec.encode != nil && !errors.Is(err, errOdd) {
					t.Errorf("Set: %v, want the codec's error", err)
				}
			})
		})
	}
}

func TestValueThatCannotBeDecoded(t *testing.T) {
	for name, codec := range map[string]brittle{"error": {decode: errors.New("odd bytes")}, "panic": {panics: true}} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			fine := newCache(t, s, &cachefill.Options[string]{Codec: brittle{}})
			c := newCache(t, s, &cachefill.Options[string]{Codec: codec})
			if err := fine.Set(t.Context(), "key", "x"); err != nil {
				t.Fatal(err)
			}
			if v, err := c.Get(t.Context(), "key", value("loaded")); v != "loaded" || err != nil {
				t.Errorf("Get = %q, %v, want a load", v, err)
			}
			if r, err := c.Peek(t.Context(), "key"); !errors.Is(err, cachefill.ErrMiss) {
				t.Errorf("Peek = %+v, %v, want ErrMiss", r, err)
			}
			if c.Stats().Unreadable == 0 {
				t.Error("not counted as unreadable")
			}
		})
	}
}

func TestJSONAndGobRefuse(t *testing.T) {
	if b, err := cachefill.JSON[float64]().Encode(math.NaN()); err == nil {
		t.Errorf("JSON of NaN: %q", b)
	}
	if b, err := cachefill.Gob[func()]().Encode(func() {}); err == nil {
		t.Errorf("Gob of a function: %q", b)
	}
	for _, data := range []string{"", "{", "x", strings.Repeat("\xff", 100)} {
		if v, err := cachefill.JSON[book]().Decode([]byte(data)); err == nil {
			t.Errorf("JSON of %q: %v", data, v)
		}
		if v, err := cachefill.Gob[book]().Decode([]byte(data)); err == nil {
			t.Errorf("Gob of %q: %v", data, v)
		}
	}
}

// TestCloneIsolatesCallers: what one does to its value, no other sees, and no
// later reader.
func TestCloneIsolatesCallers(t *testing.T) {
	for name, near := range map[string]int{"from the store": 0, "near": 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, newStore(), &cachefill.Options[[]int]{Clone: slices.Clone[[]int], Near: near})
				get := func() []int {
					v, err := c.Get(t.Context(), "key", func(ctx context.Context) ([]int, error) {
						return []int{1, 2, 3}, nil
					})
					if err != nil || !slices.Equal(v, []int{1, 2, 3}) {
						t.Errorf("Get = %v, %v, want [1 2 3]", v, err)
					}
					return v
				}
				for range 4 {
					get()[0] = 100
					synctest.Wait()
					if r, err := c.Peek(t.Context(), "key"); err != nil {
						t.Error(err)
					} else {
						r.Value[1] = 100
					}
				}
				if !t.Failed() && c.Stats().Loads != 1 {
					t.Errorf("%d loads, want 1", c.Stats().Loads)
				}
			})
		})
	}
}

// TestWithoutCloneValuesAreShared: that is what the option is for.
func TestWithoutCloneValuesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, newStore(), &cachefill.Options[[]int]{Near: 10})
		v, _ := c.Get(t.Context(), "key", value([]int{1}))
		synctest.Wait()
		same, _ := c.Get(t.Context(), "key", value([]int{2}))
		if &v[0] != &same[0] {
			t.Error("the near cache copied the value")
		}
	})
}
