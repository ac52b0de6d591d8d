package redisstore

import "time"

// SetPulse makes subscriptions notice faster that they are dead. It has to be
// called before the first Watch.
func SetPulse(s *Store, every, patience time.Duration) {
	s.pulse = pulse{every: every, patience: patience, pause: every}
}

// Inbox returns the channel of s.
func Inbox(s *Store) string { return s.inbox }

// Names returns the keys that belong to key: v, l, w, q, p, f.
func Names(s *Store, key string) []string {
	return append([]string{s.name(entryKey, key)}, s.leaseNames(key)...)
}
