package memcachestore

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
)

func TestRecordRoundTrip(t *testing.T) {
	want := record{
		kind: kindLease, token: store.NewToken(), seen: store.NewToken(),
		grant: 1<<63 + 5, mark: 1<<62 + 7, stamp: 1_800_000_000_123,
		span: maxSeconds * time.Second, body: []byte("note"),
	}
	for _, want.kind = range []kind{kindEntry, kindLease, kindFailure} {
		if got := decode(want.encode()); !reflect.DeepEqual(got, want) {
			t.Errorf("%c: got %+v, want %+v", want.kind, got, want)
		}
	}
}

// TestRecordBytes pins the layout, which other versions and languages read.
func TestRecordBytes(t *testing.T) {
	r := record{
		kind: kindEntry, token: store.Token{1, 15: 2}, seen: store.Token{3, 15: 4},
		grant: 5, mark: 6, stamp: 7, span: 8 * time.Millisecond, body: []byte("body"),
	}
	want := "\xffhg1e" +
		"\x01" + zeros(14) + "\x02" + "\x03" + zeros(14) + "\x04" +
		zeros(7) + "\x05" + zeros(7) + "\x06" + zeros(7) + "\x07" + zeros(3) + "\x08" + "body"
	if got := string(r.encode()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func zeros(n int) string { return string(make([]byte, n)) }

func FuzzDecode(f *testing.F) {
	for _, k := range []kind{kindEntry, kindLease, kindFailure} {
		f.Add(record{kind: k, token: store.NewToken(), grant: 2, stamp: 1, span: time.Second, body: []byte("b")}.encode())
	}
	f.Add([]byte(nil))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := decode(b)
		if r.kind == kindNone {
			if !reflect.DeepEqual(r, record{}) {
				t.Errorf("no record, but %+v", r)
			}
			return
		}
		if !bytes.Equal(r.encode(), b) {
			t.Errorf("%q was read as %+v", b, r)
		}
		r.holder()
		now := time.UnixMilli(1_800_000_000_000)
		if left := r.remaining(now); left < 0 || left > r.span {
			t.Errorf("%v remain of %v", left, r.span)
		}
		if left := new(strangeClocks).coolDown("", r, now); left < 0 || left > r.span {
			t.Errorf("%v remain of a cool-down of %v", left, r.span)
		}
	})
}
