package cachefill

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
)

// Codec turns values into bytes and back. It must be safe for use by many
// goroutines.
type Codec[V any] interface {
	// Name is stored with every value; bytes of another name are a miss.
	Name() string
	// Encode returns the bytes of v. They are not modified afterwards.
	Encode(v V) ([]byte, error)
	// Decode returns the value of data, which is shared and read-only; the
	// value may refer to it.
	Decode(data []byte) (V, error)
}

// JSON is the default codec: encoding/json.
func JSON[V any]() Codec[V] { return jsonCodec[V]{} }

type jsonCodec[V any] struct{}

func (jsonCodec[V]) Name() string               { return "json" }
func (jsonCodec[V]) Encode(v V) ([]byte, error) { return json.Marshal(v) }
func (jsonCodec[V]) Decode(data []byte) (v V, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// Gob is the codec of encoding/gob. It has no nil: a nil pointer comes back as
// a pointer to a zero value.
func Gob[V any]() Codec[V] { return gobCodec[V]{} }

type gobCodec[V any] struct{}

func (gobCodec[V]) Name() string { return "gob" }

func (gobCodec[V]) Encode(v V) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&v)
	return b.Bytes(), err
}

func (gobCodec[V]) Decode(data []byte) (v V, err error) {
	err = gob.NewDecoder(bytes.NewReader(data)).Decode(&v)
	return v, err
}

// Raw stores byte slices as they are.
func Raw() Codec[[]byte] { return rawCodec{} }

type rawCodec struct{}

func (rawCodec) Name() string                       { return "raw" }
func (rawCodec) Encode(v []byte) ([]byte, error)    { return v, nil }
func (rawCodec) Decode(data []byte) ([]byte, error) { return data, nil }
