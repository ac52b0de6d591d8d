package redisstore

import (
	"math"
	"strconv"
	"time"

	"github.com/herdgate/herdgate/store"
)

// What is stored and published, as the scripts write it (see lua/common.lua):
//
//	entry    version (16 bytes), flags (1 byte, bit 0: stale), value
//	lease    token (16 bytes), grant (16 digits), note
//	failure  16 zero bytes, grant (16 digits), cool until (16 digits, µs), data
//	message  kind (1 byte), grant (16 digits), length of name (8 digits), name, payload
//
// Anybody can write into a key or publish to a channel, so everything is
// checked: what cannot be read is not there.

const (
	tokenSize   = len(store.Token{})
	entryHeader = tokenSize + 1
	digitSize   = 16 // digits of a number
	leaseHeader = tokenSize + digitSize
)

// encodeEntry returns value as the entry with the given version.
func encodeEntry(version store.Token, value []byte) []byte {
	b := make([]byte, 0, entryHeader+len(value))
	b = append(b, version[:]...)
	b = append(b, 0)
	return append(b, value...)
}

// decodeEntry reads an entry. Value shares the memory of b.
func decodeEntry(b []byte) (store.Entry, bool) {
	if len(b) < entryHeader || b[tokenSize] > 1 {
		return store.Entry{}, false
	}
	e := store.Entry{Version: store.Token(b[:tokenSize]), Stale: b[tokenSize] == 1, Value: b[entryHeader:]}
	return e, !e.Version.IsZero()
}

// identity is the beginning of the record of l, by which the scripts know it.
func identity(l store.Lease) string {
	b := make([]byte, 0, leaseHeader)
	b = append(b, l.Token[:]...)
	return string(appendDigits(b, l.Grant))
}

func appendDigits(b []byte, n uint64) []byte {
	digits := strconv.FormatUint(n, 10)
	for range digitSize - len(digits) {
		b = append(b, '0')
	}
	return append(b, digits...)
}

// decodeDigits reads a number of 16 digits at the beginning of s.
func decodeDigits(s string) (n uint64, rest string, ok bool) {
	if len(s) < digitSize {
		return 0, "", false
	}
	n, err := strconv.ParseUint(s[:digitSize], 10, 64)
	return n, s[digitSize:], err == nil
}

// decodeHolder reads a lease. What cannot be read is a zero Holder: it comes
// from a script that has checked it.
func decodeHolder(record string, left time.Duration) store.Holder {
	if len(record) < leaseHeader {
		return store.Holder{}
	}
	grant, note, _ := decodeDigits(record[tokenSize:])
	return store.Holder{Grant: grant, Note: store.DecodeNote([]byte(note)), Left: left}
}

// decodeFailure reads a failure as it is at the given time of the server.
func decodeFailure(record string, now time.Time) store.Failure {
	if len(record) < leaseHeader {
		return store.Failure{}
	}
	until, data, ok := decodeDigits(record[leaseHeader:])
	if !ok || data == "" {
		return store.Failure{}
	}
	cool := time.UnixMicro(int64(until)).Sub(now)
	return store.Failure{Data: []byte(data), CoolDown: max(cool, 0)}
}

// message is what a process is told about a key.
type message struct {
	kind    byte
	grant   uint64 // that ended, zero if unknown
	name    string // the key's name of kind waitKey
	payload string
}

// The kinds of messages.
const (
	filled  = 'f' // payload: the entry, or nothing if it is too long
	yielded = 'y' // payload: cool-down (16 digits, µs) and data, or nothing
	ended   = 'd' // no payload
	handed  = 'q' // payload: token, grant, when its owner asked (16 digits), 1 if the grant is a fence
	beat    = 'h' // payload: the number of the heartbeat; no grant, no name
)

// decodeMessage reads a message.
func decodeMessage(s string) (m message, ok bool) {
	if s == "" {
		return m, false
	}
	m.kind = s[0]
	if m.kind == beat {
		m.payload = s[1:]
		return m, true
	}
	var rest string
	m.grant, rest, ok = decodeDigits(s[1:])
	if !ok || len(rest) < 8 {
		return message{}, false
	}
	size, err := strconv.ParseUint(rest[:8], 10, 32)
	rest = rest[8:]
	if err != nil || uint64(len(rest)) < size {
		return message{}, false
	}
	m.name, m.payload = rest[:size], rest[size:]
	return m, true
}

// event returns m as the event on key, but for the Lease of one handed over.
// A payload that cannot be read is not there.
func (m message) event() store.Event {
	e := store.Event{Grant: m.grant}
	switch m.kind {
	case filled:
		e.Entry, _ = decodeEntry([]byte(m.payload))
	case yielded:
		if cool, data, ok := decodeDigits(m.payload); ok && data != "" {
			e.Failure = store.Failure{Data: []byte(data), CoolDown: micros(cool)}
		}
	}
	return e
}

// micros returns n µs, at most the longest Duration.
func micros(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// lease returns the lease that was handed over by m, but for its key. epoch is
// when the clock of this process's requests started.
//
//  1. The waiter asks for its turn, saying when by its own clock.
//  2. The lease is handed over, and runs for store.QueueTTL.
//  3. The message arrives, nobody knows how much later.
//
// The message repeats what was said in 1, so the lease expires for its holder
// QueueTTL after that: never later than at the server. (TestHandedLeaseExpires)
func (m message) lease(epoch time.Time) (l store.Lease, ok bool) {
	if m.kind != handed || len(m.payload) != leaseHeader+digitSize+1 {
		return l, false
	}
	grant, rest, ok := decodeDigits(m.payload[tokenSize:])
	asked, fence, alsoOK := decodeDigits(rest)
	if !ok || !alsoOK || micros(asked) > time.Since(epoch) {
		return l, false
	}
	l.Token, l.Grant = store.Token([]byte(m.payload[:tokenSize])), grant
	l.Expires = epoch.Add(micros(asked) + store.QueueTTL)
	if fence == "1" {
		l.Fence = grant
	}
	return l, !l.Token.IsZero()
}
