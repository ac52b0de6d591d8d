package cachefill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// someHeader has every field set.
func someHeader() header {
	return header{
		grant:   1_767_366_245_000_001,
		created: time.UnixMicro(1_767_366_245_123_456),
		fresh:   55 * time.Second,
		took:    1500 * time.Microsecond,
		codec:   "json",
		typ:     "main.Page",
	}
}

func encoded(t testing.TB, h header, payload string, compressAbove int) []byte {
	t.Helper()
	b, err := h.encode([]byte(payload), compressAbove)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHeaderRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*header){
		"every field":   func(*header) {},
		"zero":          func(h *header) { *h = header{created: time.UnixMicro(0)} },
		"not found":     func(h *header) { h.flags = flagNotFound },
		"before 1970":   func(h *header) { h.created = time.UnixMicro(-1) },
		"largest grant": func(h *header) { h.grant = 1<<64 - 1 },
		"for ever":      func(h *header) { h.fresh = (1<<63 - 1) / 1000 * 1000 },
		"any bytes":     func(h *header) { h.codec, h.typ = "\x00\xff", strings.Repeat("map[string]", 50) },
	} {
		want := someHeader()
		change(&want)
		for _, payload := range []string{"", "x", "hg\x01\x00", strings.Repeat("abc", 10_000)} {
			for _, above := range []int{0, 1, 1000} {
				got, data, err := decodeHeader(encoded(t, want, payload, above))
				compressed := above > 0 && len(payload) >= above
				if (got.flags&flagCompressed != 0) != compressed {
					t.Errorf("%s: %d bytes, compressed above %d: flags %b", name, len(payload), above, got.flags)
				}
				got.flags &^= flagCompressed
				if err != nil || got != want || string(data) != payload {
					t.Errorf("%s: got %+v, %d bytes, %v, want %+v, %d bytes", name, got, len(data), err, want, len(payload))
				}
			}
		}
	}
}

func TestCompressionPays(t *testing.T) {
	payload := strings.Repeat("the same words over and over ", 1000)
	if b := encoded(t, someHeader(), payload, 1); len(b) > len(payload)/10 {
		t.Errorf("%d bytes became %d", len(payload), len(b))
	}
}

func TestNewerFormatIsTold(t *testing.T) {
	for _, b := range []string{"hg\x02\x00", "hg\xff whatever it will be"} {
		if _, _, err := decodeHeader([]byte(b)); !errors.Is(err, errNewerFormat) {
			t.Errorf("decodeHeader(%q): %v, want errNewerFormat", b, err)
		}
	}
}

func TestDamagedIsUnreadable(t *testing.T) {
	whole := encoded(t, someHeader(), "{}", 0)
	packed := encoded(t, someHeader(), strings.Repeat("x", 1000), 1)
	bodyAt := bytes.Index(packed, []byte("main.Page")) + len("main.Page")
	damaged := map[string][]byte{
		"nothing":          nil,
		"foreign":          []byte(`{"json": true}`),
		"format 0":         append([]byte("hg\x00"), whole[3:]...),
		"endless number":   append([]byte("hg\x01\x00"), bytes.Repeat([]byte{0xff}, 20)...),
		"long name":        binary.AppendUvarint([]byte("hg\x01\x00\x00\x00\x00\x00"), 1<<62),
		"too fresh":        binary.AppendUvarint([]byte("hg\x01\x00\x00\x00"), 1<<63),
		"larger than said": append(binary.AppendUvarint(bytes.Clone(packed[:bodyAt]), 10), packed[bodyAt+2:]...),
		"less than said":   append(binary.AppendUvarint(bytes.Clone(packed[:bodyAt]), 2000), packed[bodyAt+2:]...),
		"body cut":         packed[:len(packed)-3],
		"body missing":     packed[:bodyAt],
	}
	for n := range len(whole) - len("{}") {
		damaged[fmt.Sprint("cut at ", n)] = whole[:n]
	}
	for name, b := range damaged {
		if _, _, err := decodeHeader(b); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: decodeHeader(%q): %v, want errUnreadable", name, b, err)
		}
	}
}

// TestBombIsBounded: a payload is inflated to the size that it claims, and no
// further, however much there is.
func TestBombIsBounded(t *testing.T) {
	const size = 16 << 20
	packed, err := deflate(make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	claim := func(n uint64) []byte {
		h := someHeader()
		h.flags = flagCompressed
		head := encoded(t, h, "", 0)
		head = head[:len(head)-1] // the size of nothing
		return append(binary.AppendUvarint(head, n), packed...)
	}
	if _, data, err := decodeHeader(claim(size)); err != nil || len(data) != size {
		t.Fatalf("the true size: %d bytes, %v", len(data), err)
	}
	for _, n := range []uint64{1000, maxInflated + 1, 1<<64 - 1} {
		b := claim(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := decodeHeader(b)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errUnreadable) || used > 2<<20 {
			t.Errorf("%d claimed: %v after %d bytes, want errUnreadable and little memory", n, err, used)
		}
	}
}

// FuzzDecodeHeader: whatever lies in the store is read or refused, and what is
// read says the same when it is written again.
func FuzzDecodeHeader(f *testing.F) {
	f.Add(encoded(f, someHeader(), `{"a":1}`, 0))
	f.Add(encoded(f, someHeader(), strings.Repeat("x", 100), 1))
	f.Add([]byte("hg\x02"))
	f.Add([]byte("hg\x01\x02\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := decodeHeader(b)
		if err != nil {
			if !errors.Is(err, errUnreadable) && !errors.Is(err, errNewerFormat) {
				t.Fatalf("decodeHeader: %v", err)
			}
			return
		}
		above := 0
		if h.flags&flagCompressed != 0 {
			above = 1
		}
		flags := h.flags
		h.flags &^= flagCompressed
		again, same, err := decodeHeader(encoded(t, h, string(payload), above))
		if len(payload) > 0 {
			h.flags = flags
		}
		if err != nil || again != h || !bytes.Equal(same, payload) {
			t.Fatalf("written and read again: %+v, %v, want %+v", again, err, h)
		}
	})
}
