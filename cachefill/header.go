package cachefill

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The stored form of a value, documented in docs/format.md: a header, and then
// the payload exactly as the codec made it, or compressed.
const (
	magic  = "hg"
	format = 1

	flagCompressed = 1 << 0
	flagNotFound   = 1 << 1

	// maxInflated bounds what a compressed payload may claim to hold.
	maxInflated = 1 << 30
)

var (
	errUnreadable  = errors.New("cachefill: stored value is damaged or foreign")
	errNewerFormat = errors.New("cachefill: stored value is of a newer format")
)

// header is what is known of a stored value.
type header struct {
	flags   byte
	grant   uint64        // of the lease that filled it
	created time.Time     // when the load ended, by the store's time
	fresh   time.Duration // for how long from then on
	took    time.Duration // the load
	codec   string
	typ     string
}

// encode returns the stored form of payload, compressed if it has at least
// compressAbove bytes and that is above zero.
func (h header) encode(payload []byte, compressAbove int) ([]byte, error) {
	size := len(payload)
	if compressAbove > 0 && size >= compressAbove {
		packed, err := deflate(payload)
		if err != nil {
			return nil, err
		}
		payload = packed
		h.flags |= flagCompressed
	}
	b := make([]byte, 0, 48+len(h.codec)+len(h.typ)+len(payload))
	b = append(b, magic...)
	b = append(b, format, h.flags)
	b = binary.AppendUvarint(b, h.grant)
	b = binary.AppendVarint(b, h.created.UnixMicro())
	b = binary.AppendUvarint(b, uint64(max(h.fresh, 0).Microseconds()))
	b = binary.AppendUvarint(b, uint64(max(h.took, 0).Microseconds()))
	b = appendString(b, h.codec)
	b = appendString(b, h.typ)
	if h.flags&flagCompressed != 0 {
		b = binary.AppendUvarint(b, uint64(size))
	}
	return append(b, payload...), nil
}

// decodeHeader splits a stored value into its header and its payload, which
// refers to data unless it was compressed. The error is errNewerFormat or
// errUnreadable.
func decodeHeader(data []byte) (header, []byte, error) {
	if len(data) < 4 || string(data[:2]) != magic {
		return header{}, nil, errUnreadable
	}
	if data[2] > format {
		return header{}, nil, errNewerFormat
	}
	if data[2] != format {
		return header{}, nil, errUnreadable
	}
	r := reader{data: data[4:]}
	h := header{
		flags:   data[3],
		grant:   r.uvarint(),
		created: time.UnixMicro(r.varint()),
		fresh:   r.duration(),
		took:    r.duration(),
		codec:   r.string(),
		typ:     r.string(),
	}
	if h.flags&flagCompressed == 0 {
		return h, r.data, r.err
	}
	size := r.uvarint()
	if r.err != nil || size > maxInflated {
		return header{}, nil, errUnreadable
	}
	payload, err := inflate(r.data, int(size))
	return h, payload, err
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// reader takes a header apart. After the first error it returns zeros.
type reader struct {
	data []byte
	err  error
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	r.advance(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	r.advance(n)
	return v
}

func (r *reader) duration() time.Duration {
	us := r.uvarint()
	if us > uint64(1<<63-1)/1000 {
		r.fail()
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

func (r *reader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.data)) {
		r.fail()
		return ""
	}
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}

// advance skips a number of n bytes. None, or fewer, means that it was cut or
// too large.
func (r *reader) advance(n int) {
	if n <= 0 {
		r.fail()
		return
	}
	r.data = r.data[n:]
}

func (r *reader) fail() { r.data, r.err = nil, errUnreadable }

func deflate(payload []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(payload); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func inflate(packed []byte, size int) ([]byte, error) {
	r := flate.NewReader(bytes.NewReader(packed))
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, int64(size)+1))
	if err != nil || n != int64(size) {
		return nil, fmt.Errorf("%w: %d bytes inflated, want %d", errUnreadable, n, size)
	}
	return b.Bytes(), nil
}
