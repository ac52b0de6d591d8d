package storetest

import (
	"strings"
	"sync"

	"github.com/herdgate/herdgate/store"
)

// emptyKey is held by the case that uses the empty key, of which every server
// has only one.
var emptyKey sync.Mutex

// oddKeys returns keys that are easily mistaken: for syntax, for one another,
// for nothing. All but the empty one are new at each call.
func oddKeys() []string {
	id := store.NewToken().String()
	huge := id + strings.Repeat("k", 100_000)
	return []string{
		"",
		id,
		id + "\x00",
		"\x00" + id,
		id + "\n",
		id + "\r\nset x 0 0 1\r\n",
		" " + id + " ",
		"{" + id + "}",
		"{}" + id,
		id + "{a}",
		id + "{b}",
		"}" + id + "{",
		id + ":l",
		id + ":v",
		id + "*?[a-z]",
		id + "%s'\"\\;--",
		id + "\xff\xfe\x80",
		id + "é",
		id + "e\u0301",
		strings.ToUpper(id),
		huge + "a",
		huge + "b",
	}
}

// oddValues returns values that are easily mistaken for something else.
func oddValues() [][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return [][]byte{
		{},
		{0},
		[]byte("\r\nEND\r\n"),
		[]byte("null"),
		[]byte("0"),
		all,
		make([]byte, 64),
		[]byte(strings.Repeat("v", 100_000)),
	}
}
