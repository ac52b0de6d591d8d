package memcachestore

import (
	"encoding/binary"
	"time"

	"github.com/herdgate/herdgate/store"
)

// kind says what an item is.
type kind byte

const (
	kindNone    kind = 0 // no item, or none of ours: as good as absent
	kindEntry   kind = 'e'
	kindLease   kind = 'l'
	kindFailure kind = 'f'
)

// record is what an item says. Its bytes are a header of fixed length, the
// same for all kinds, numbers in big endian, and the body:
//
//	 0  4  magic: 0xff 'h' 'g' '1'
//	 4  1  kind: 'e', 'l' or 'f'
//	 5 16  token
//	21 16  seen
//	37  8  grant
//	45  8  mark
//	53  8  stamp, milliseconds since 1970
//	61  4  span, milliseconds
//	65     body
//
// A field without meaning for the kind is zero. The value of an entry is the
// body, so that no value can be mistaken for a lease or a failure.
type record struct {
	kind  kind
	token store.Token // entry: its version; lease: the holder's token

	// seen is the version that a lease or failure refreshes, zero for that
	// of a cold load.
	seen store.Token

	// grant is the lease's. It is made anew for every add and cas that is
	// sent, see mint.
	grant uint64

	// mark is zero for an entry as it was filled, and changed by every
	// Expire. A refresh lease, and the failure it leaves, carry the mark of
	// the entry it refreshes.
	mark uint64

	// stamp is when an entry or a failure was written, in milliseconds since
	// 1970 by the writer's wall clock. It decides nothing about leases.
	stamp int64

	// span is the time to live of an entry, and the cool-down of a failure.
	span time.Duration

	body []byte // entry: the value; lease: the note; failure: its data
}

const (
	magic      = "\xffhg1"
	headerSize = 65
)

func (r record) encode() []byte {
	b := make([]byte, 0, headerSize+len(r.body))
	b = append(b, magic...)
	b = append(b, byte(r.kind))
	b = append(b, r.token[:]...)
	b = append(b, r.seen[:]...)
	b = binary.BigEndian.AppendUint64(b, r.grant)
	b = binary.BigEndian.AppendUint64(b, r.mark)
	b = binary.BigEndian.AppendUint64(b, uint64(r.stamp))
	b = binary.BigEndian.AppendUint32(b, uint32(r.span.Milliseconds()))
	return append(b, r.body...)
}

// decode reads what encode wrote. Anything else, foreign or damaged, is a
// record of kindNone.
func decode(b []byte) record {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return record{}
	}
	r := record{
		kind:  kind(b[4]),
		token: store.Token(b[5:21]),
		seen:  store.Token(b[21:37]),
		grant: binary.BigEndian.Uint64(b[37:]),
		mark:  binary.BigEndian.Uint64(b[45:]),
		stamp: int64(binary.BigEndian.Uint64(b[53:])),
		span:  time.Duration(binary.BigEndian.Uint32(b[61:])) * time.Millisecond,
		body:  b[headerSize:],
	}
	switch {
	case r.kind == kindEntry && !r.token.IsZero():
		return r
	case r.kind == kindLease && !r.token.IsZero() && r.grant != 0:
		return r
	case r.kind == kindFailure:
		return r
	}
	return record{}
}

// is reports whether r is the entry with the given version.
func (r record) is(version store.Token) bool {
	return r.kind == kindEntry && r.token == version
}

// grants reports whether r is the record of lease l.
func (r record) grants(l store.Lease) bool {
	return r.kind == kindLease && r.token == l.Token && r.grant == l.Grant
}

// refreshes reports whether r, from a lease item, counts beside the value
// item: as long as the version is there and nobody expired it. What a lease
// loads may be older than that, and a failure is forgotten then.
func (r record) refreshes(value record) bool {
	if r.kind != kindLease && r.kind != kindFailure {
		return false
	}
	return value.is(r.seen) && value.mark == r.mark
}

func (r record) entry() store.Entry {
	return store.Entry{Version: r.token, Stale: r.mark != 0, Value: r.body}
}

func (r record) holder() store.Holder {
	return store.Holder{Grant: r.grant, Note: store.DecodeNote(r.body)}
}

func (r record) found() store.Answer {
	return store.Answer{State: store.Found, Entry: r.entry()}
}

func (r record) held() store.Answer {
	return store.Answer{State: store.Held, Holder: r.holder()}
}
