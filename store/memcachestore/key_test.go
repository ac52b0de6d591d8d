package memcachestore

import (
	"strings"
	"testing"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
)

// oddKeys are legal keys that memcached would refuse or confuse.
var oddKeys = []string{
	"", " ", "#", "a b", "a\r\nflush_all", "\x00", "\x7f", "zwölf", "\xff\xfe", ":", "v:", "home",
	strings.Repeat("k", 238), strings.Repeat("k", 239), strings.Repeat("k", 70000),
	"#" + strings.Repeat("A", 43),
}

func TestLaw12AnyKey(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	value := func(key string) string { return "value of " + key[:min(len(key), 1000)] }
	versions := make(map[string]store.Token)
	for _, key := range oddKeys {
		versions[key] = fill(t, s, key, value(key))
	}
	for _, key := range oddKeys {
		if e := entry(t, s, key, value(key)); e.Version != versions[key] {
			t.Errorf("key %.20q: another key's entry", key)
		}
		claim(t, s, refresh(key, versions[key]), store.Granted)
	}
	for _, key := range oddKeys {
		is(t, "Delete", s.Delete(t.Context(), key), nil)
		entry(t, s, key, "")
	}
}

func TestLaw12AnyValue(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	s, _ := newStore(t, server.Addr)
	lease := record{kind: kindLease, token: store.NewToken(), grant: 2}.encode()
	for _, value := range []string{"x", "\r\nEND\r\n", string(lease), magic} {
		fill(t, s, "k", value)
		entry(t, s, "k", value)
		is(t, "Delete", s.Delete(t.Context(), "k"), nil)
	}
	fill(t, s, "empty", "")
	e, err := s.Get(t.Context(), "empty")
	if err != nil || len(e.Value) != 0 || e.Version.IsZero() {
		t.Errorf("an empty value came back as %+v, %v", e, err)
	}
}

// TestLaw12HashedKeys: a key that looks like the hash of another is another.
func TestLaw12HashedKeys(t *testing.T) {
	n, err := newNames("")
	is(t, "newNames", err, nil)
	hashed := n.value("a b")
	twin := strings.TrimPrefix(hashed, n.values)
	if n.value(twin) == hashed {
		t.Errorf("the keys %q and %q share the name %q", "a b", twin, hashed)
	}
}

func TestNamespacesAreApart(t *testing.T) {
	t.Parallel()
	server := servertest.Memcached(t)
	a, _ := newStore(t, server.Addr)
	b, err := New(a.client, &Options{Namespace: "other.app-2"})
	is(t, "New", err, nil)
	fill(t, a, "k", "a's")
	entry(t, b, "k", "")
	fill(t, b, "k", "b's")
	entry(t, a, "k", "a's")
}

func FuzzNames(f *testing.F) {
	for _, key := range oddKeys {
		f.Add(key, "other")
	}
	n, err := newNames(strings.Repeat("n", maxNamespace))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, other string) {
		for _, name := range []string{n.value(key), n.lease(key)} {
			if len(name) == 0 || len(name) > maxName || strings.IndexFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) >= 0 {
				t.Errorf("%q: memcached does not take the name %q", key, name)
			}
		}
		if key != other && n.value(key) == n.value(other) || n.value(key) == n.lease(other) {
			t.Errorf("%q and %q share the name %q", key, other, n.value(key))
		}
	})
}
