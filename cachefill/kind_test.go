package cachefill

import (
	"slices"
	"testing"
)

type volume struct {
	Title string
	Notes map[string][]byte
	Next  *volume
}

// FuzzGob: damaged bytes are an error, whatever encoding/gob makes of them.
func FuzzGob(f *testing.F) {
	k := kindOf(Gob[volume]())
	whole, err := k.encode(volume{"Momo", map[string][]byte{"a": {1}}, &volume{Title: "Krabat"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for i := 0; i < len(whole); i += 7 {
		f.Add(whole[:i])
		damaged := slices.Clone(whole)
		damaged[i] ^= 0x55
		f.Add(damaged)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := k.decode(data)
		if err != nil {
			return
		}
		if _, err := k.encode(v); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
