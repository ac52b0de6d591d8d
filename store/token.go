package store

import (
	"crypto/rand"
	"encoding/hex"
)

// Token identifies one attempt to get a lease and, once it has filled an
// entry, the version of that entry. It is random, so that no two attempts of
// any process share one.
type Token [16]byte

// NewToken returns a token that was never used before.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // never fails: it crashes the process instead
	return t
}

// IsZero reports whether t is the zero Token, which stands for "none".
func (t Token) IsZero() bool { return t == Token{} }

func (t Token) String() string { return hex.EncodeToString(t[:]) }
