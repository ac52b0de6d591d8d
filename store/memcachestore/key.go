package memcachestore

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

const (
	defaultNamespace = "herdgate"
	maxNamespace     = 64

	// maxName is the longest name of an item that memcached takes.
	maxName = 250
)

// names maps keys to the names of items. A key that is short and printable
// stays readable: "herdgate:v:home". Any other becomes its SHA-256,
// "herdgate:v:#" and 43 characters. A readable key never begins with '#', so
// that no two keys share a name.
type names struct {
	values, leases string // prefixes of equal length
}

func newNames(namespace string) (names, error) {
	if namespace == "" {
		namespace = defaultNamespace
	}
	if len(namespace) > maxNamespace {
		return names{}, fmt.Errorf("memcachestore: Options.Namespace has %d characters, at most %d are possible", len(namespace), maxNamespace)
	}
	for _, c := range []byte(namespace) {
		if !wordByte(c) {
			return names{}, errors.New("memcachestore: Options.Namespace contains " + fmt.Sprintf("%q", c) + ": letters, digits, '-', '_' and '.' are possible")
		}
	}
	return names{values: namespace + ":v:", leases: namespace + ":l:"}, nil
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// value is the name of the item for the entry, or for the lease or failure of
// a cold load.
func (n names) value(key string) string { return n.values + readable(key, maxName-len(n.values)) }

// lease is the name of the item for the lease or failure of a refresh.
func (n names) lease(key string) string { return n.leases + readable(key, maxName-len(n.leases)) }

// readable returns key itself if it can be part of a name with up to room
// characters, else its hash.
func readable(key string, room int) string {
	ok := len(key) <= room && (key == "" || key[0] != '#')
	for i := 0; ok && i < len(key); i++ {
		ok = ' ' < key[i] && key[i] <= '~'
	}
	if ok {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}
