package redisstore

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
)

func FuzzEntry(f *testing.F) {
	f.Add([]byte(""))
	f.Add(encodeEntry(store.NewToken(), []byte("value")))
	f.Add(bytes.Repeat([]byte{1}, entryHeader))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := decodeEntry(b)
		if !ok {
			return
		}
		if e.Version.IsZero() {
			t.Error("an entry without version")
		}
		again := encodeEntry(e.Version, e.Value)
		if e.Stale {
			again[tokenSize] = 1
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%q became %q", b, again)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add("", int64(0))
	f.Add(identity(store.Lease{Token: store.NewToken(), Grant: 1})+`{"owner":"x"}`, int64(5))
	f.Add(strings.Repeat("\x00", 16)+strings.Repeat("9", 32)+"boom", int64(1))
	f.Fuzz(func(t *testing.T, record string, left int64) {
		decodeHolder(record, time.Duration(left))
		if failure := decodeFailure(record, time.UnixMicro(left)); failure.CoolDown < 0 || failure.CoolDown > 0 && len(failure.Data) == 0 {
			t.Errorf("%q is the failure %+v", record, failure)
		}
	})
}

func FuzzMessage(f *testing.F) {
	name := fmt.Sprintf("%08d%s", 4, "name")
	f.Add("")
	f.Add("h12")
	f.Add("d" + strings.Repeat("0", 16) + name)
	f.Add("f" + strings.Repeat("1", 16) + name + string(encodeEntry(store.NewToken(), []byte("value"))))
	f.Add("y" + strings.Repeat("1", 16) + name + strings.Repeat("9", 16) + "boom")
	f.Add("q" + strings.Repeat("1", 16) + name + strings.Repeat("t", 16) + strings.Repeat("1", 16) + strings.Repeat("0", 16) + "1")
	f.Fuzz(func(t *testing.T, payload string) {
		m, ok := decodeMessage(payload)
		if !ok {
			return
		}
		e := m.event()
		if e.Failure.CoolDown < 0 || !e.Lease.Token.IsZero() {
			t.Errorf("%q is the event %+v", payload, e)
		}
		epoch := time.Now().Add(-time.Hour)
		l, ok := m.lease(epoch)
		if ok && (l.Token.IsZero() || l.Expires.After(time.Now().Add(store.QueueTTL))) {
			t.Errorf("%q hands over %+v", payload, l)
		}
	})
}

// FuzzName: no two keys share a name of any kind, and the names of one key
// share a slot.
func FuzzName(f *testing.F) {
	f.Add("", "{}")
	f.Add("a", "b")
	f.Add("{a}", "a")
	f.Add("cbf29ce484222325", "") // the hash of the empty key
	f.Fuzz(func(t *testing.T, a, b string) {
		s := &Store{namespace: "ns"}
		seen := make(map[string]string)
		for _, key := range []string{a, b} {
			tags := make(map[string]bool)
			for _, name := range append(s.leaseNames(key), s.name(entryKey, key)) {
				if other, ok := seen[name]; ok && other != key {
					t.Fatalf("%q and %q share the name %q", other, key, name)
				}
				seen[name] = key
				_, rest, _ := strings.Cut(name, "{")
				tag, _, ok := strings.Cut(rest, "}")
				if !ok || tag == "" {
					t.Fatalf("%q has no hash tag", name)
				}
				tags[tag] = true
			}
			if len(tags) != 1 {
				t.Errorf("%q has the tags %v", key, tags)
			}
		}
	})
}

// TestClockPrefersQuickSamples: a slow reply says less about the server's time
// than a quick one, until the quick one has grown old.
func TestClockPrefersQuickSamples(t *testing.T) {
	var c clock
	start := time.Now()
	ahead := func(sent time.Time, trip, by time.Duration) {
		c.observe(sent, sent.Add(trip), sent.Add(trip/2+by))
	}
	offset := func() time.Duration { return c.server.Sub(c.local) }
	ahead(start, 2*time.Millisecond, time.Hour)
	if offset() != time.Hour {
		t.Errorf("one sample: off by %v", offset()-time.Hour)
	}
	ahead(start.Add(time.Second), 500*time.Millisecond, 2*time.Hour)
	if offset() != time.Hour {
		t.Error("a slow sample has replaced a quick one")
	}
	ahead(start.Add(2*time.Second), time.Millisecond, 3*time.Hour)
	if offset() != 3*time.Hour {
		t.Error("a quicker sample was ignored")
	}
	ahead(start.Add(time.Hour), 100*time.Millisecond, 4*time.Hour)
	if offset() != 4*time.Hour {
		t.Error("an old sample is kept for ever")
	}
}
