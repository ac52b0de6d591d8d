package cachefill

import (
	"fmt"
	"reflect"
)

// kind is a type of value and how it is stored, for the engine, which handles
// values of any type.
type kind struct {
	name   string // of the type
	codec  string
	encode func(v any) ([]byte, error)
	decode func(data []byte) (any, error)
}

// kindOf returns the kind of V under codec.
func kindOf[V any](codec Codec[V]) *kind {
	return &kind{
		name:  reflect.TypeFor[V]().String(),
		codec: codec.Name(),
		encode: func(v any) (data []byte, err error) {
			defer recovered(&err)
			typed, ok := v.(V)
			if !ok && v != nil {
				return nil, fmt.Errorf("%w: have %T, want %v", ErrType, v, reflect.TypeFor[V]())
			}
			return codec.Encode(typed)
		},
		decode: func(data []byte) (v any, err error) {
			defer recovered(&err)
			return codec.Decode(data)
		},
	}
}

// recovered turns a panic of a codec into an error: it would end the process,
// since values are encoded and decoded on no caller's goroutine.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("cachefill: codec panicked: %v", p)
	}
}
