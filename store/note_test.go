package store_test

import (
	"testing"
	"time"

	"github.com/herdgate/herdgate/store"
)

var note = store.Note{
	Owner: "billing", Host: "web-3", PID: 4711, Reason: "monthly run",
	Since:  time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC),
	Expect: 3 * time.Second, AlertAfter: time.Minute, Stack: "main.main\n\tmain.go:1",
}

func TestNoteComesBack(t *testing.T) {
	for _, n := range []store.Note{note, {}, {Reason: "\"\x00\n{é}"}} {
		if got := store.DecodeNote(n.Encode()); got != n {
			t.Errorf("%+v came back as %+v", n, got)
		}
	}
}

// TestNoteForm pins the bytes that other versions and languages read.
func TestNoteForm(t *testing.T) {
	const want = `{"owner":"billing","host":"web-3","pid":4711,"reason":"monthly run",` +
		`"since":"2026-01-02T15:04:05.000000006Z","expect":3000000000,"alert_after":60000000000,"stack":"main.main\n\tmain.go:1"}`
	if got := string(note.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(store.Note{}.Encode()); got != "{}" {
		t.Errorf("the zero note is %s", got)
	}
}

// TestDamagedNoteIsZero: a note that cannot be read keeps nobody from a lease.
func TestDamagedNoteIsZero(t *testing.T) {
	for _, b := range []string{"", "null", "{", "[]", `{"pid":"x","owner":"half"}`, `"text"`, "\x00\xff"} {
		if got := store.DecodeNote([]byte(b)); got != (store.Note{}) {
			t.Errorf("%q was read as %+v", b, got)
		}
	}
	if b := (store.Note{Since: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}).Encode(); store.DecodeNote(b) != (store.Note{}) {
		t.Errorf("a year that JSON cannot say was encoded as %s", b)
	}
}

func TestNoteNamesTheHolder(t *testing.T) {
	for want, n := range map[string]store.Note{
		"billing (host web-3, pid 4711) since 2026-01-02T15:04:05Z: monthly run": note,
		"unknown":           {},
		"billing":           {Owner: "billing"},
		"unknown: by night": {Reason: "by night"},
	} {
		if got := n.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzDecodeNote reads arbitrary bytes: no crash, and what was read is written
// and read again unchanged.
func FuzzDecodeNote(f *testing.F) {
	f.Add(note.Encode())
	f.Add([]byte(`{"since":"0001-01-01T00:00:00Z","pid":-1}`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := store.DecodeNote(b)
		_ = n.String()
		again := store.DecodeNote(n.Encode())
		if !n.Since.Equal(again.Since) {
			t.Errorf("%v became %v", n.Since, again.Since)
		}
		n.Since, again.Since = time.Time{}, time.Time{}
		if n != again {
			t.Errorf("%+v became %+v", n, again)
		}
	})
}
