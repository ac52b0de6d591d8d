package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// Note says who holds a lease, since when and why, to whoever is refused.
// Its times come from the holder's wall clock: they inform, they decide
// nothing.
type Note struct {
	Owner  string    `json:"owner,omitempty"`  // the app's name for itself
	Host   string    `json:"host,omitempty"`   // host name
	PID    int       `json:"pid,omitempty"`    // process id
	Reason string    `json:"reason,omitempty"` // why the lease was taken
	Since  time.Time `json:"since,omitzero"`   // when it was asked for

	// Expect is how long the holder expects to need, zero if it does not
	// know. Stores without wake-ups are polled accordingly.
	Expect time.Duration `json:"expect,omitempty"`

	// AlertAfter is how long the lease may be held before somebody should
	// be told, zero for never.
	AlertAfter time.Duration `json:"alert_after,omitempty"`

	Stack string `json:"stack,omitempty"` // where it was taken, if asked for
}

// String names the holder in one line: "billing (host web-3, pid 4711) since
// 2026-01-02T15:04:05Z: monthly run".
func (n Note) String() string {
	s := n.Owner
	if s == "" {
		s = "unknown"
	}
	if n.Host != "" || n.PID != 0 {
		s += fmt.Sprintf(" (host %s, pid %d)", n.Host, n.PID)
	}
	if !n.Since.IsZero() {
		s += " since " + n.Since.UTC().Format(time.RFC3339)
	}
	if n.Reason != "" {
		s += ": " + n.Reason
	}
	return s
}

// Encode returns the note in the form that stores keep: JSON, documented in
// docs/format.md.
func (n Note) Encode() []byte {
	b, err := json.Marshal(n)
	if err != nil { // a year beyond 9999 in Since
		return nil
	}
	return b
}

// DecodeNote reads what [Note.Encode] wrote. What cannot be read is the zero
// Note: a damaged note must not keep anybody from a lease.
func DecodeNote(b []byte) Note {
	var n Note
	if json.Unmarshal(b, &n) != nil {
		return Note{}
	}
	return n
}
