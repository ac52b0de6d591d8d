package main

import (
	"fmt"
	"slices"
	"time"
)

// violation is a law of the design that a history breaks. A law is about what
// happened and in which order, never about how long it took on this machine,
// except that nobody may be stuck.
type violation struct {
	Law  int    `json:"law"`
	Text string `json:"text"`
}

func broken(law int, format string, args ...any) []violation {
	return []violation{{law, fmt.Sprintf(format, args...)}}
}

// lawOneLoad: while a load of a key runs, nobody begins another, as long as the
// store answers.
func lawOneLoad(loads []Load) (v []violation) {
	return lawApart(1, guardedLoads(loads))
}

// guardedLoads returns the loads that were begun with the store's consent.
func guardedLoads(loads []Load) []Load {
	return slices.DeleteFunc(slices.Clone(loads), func(l Load) bool { return l.Alone })
}

// lawApart: loads of a key do not overlap.
func lawApart(law int, loads []Load) (v []violation) {
	last := map[string]Load{}
	for _, l := range byStart(loads) {
		if before, ok := last[l.Key]; ok && (before.End == 0 || l.Start < before.End) {
			v = append(v, broken(law, "server %d began to load %q while server %d was loading it", l.Worker, l.Key, before.Worker)...)
		}
		if before := last[l.Key]; l.End == 0 || l.End > before.End {
			last[l.Key] = l
		}
	}
	return firstFew(v)
}

// lawLoads: there are n loads, no more and no less.
func lawLoads(law int, loads []Load, n int) []violation {
	if len(loads) == n {
		return nil
	}
	return broken(law, "%d loads instead of %d", len(loads), n)
}

// lawLoadedOnce: each key was loaded once.
func lawLoadedOnce(loads []Load, keys []string) (v []violation) {
	n := map[string]int{}
	for _, l := range loads {
		n[l.Key]++
	}
	for _, key := range keys {
		if n[key] != 1 {
			v = append(v, broken(1, "%d loads of %q", n[key], key)...)
		}
	}
	return firstFew(v)
}

// lawReturned: every caller came back.
func lawReturned(law, stuck int) []violation {
	if stuck == 0 {
		return nil
	}
	return broken(law, "%d callers are stuck", stuck)
}

// lawServed: every call got a value.
func lawServed(law int, calls []Call) (v []violation) {
	for _, c := range calls {
		if !c.ok() {
			v = append(v, broken(law, "a caller on server %d got no value but: %s", c.Worker, c.Err)...)
		}
	}
	return firstFew(v)
}

// lawSomeoneServed: some call got a value.
func lawSomeoneServed(law int, calls []Call) []violation {
	if slices.ContainsFunc(calls, func(c Call) bool { return c.ok() }) {
		return nil
	}
	return broken(law, "none of %d calls got a value", len(calls))
}

// lawReal: every value was made by a load of its key that succeeded.
func lawReal(calls []Call, loads []Load) (v []violation) {
	made := map[uint64]Load{}
	for _, l := range loads {
		made[l.ID] = l
	}
	for _, c := range calls {
		l := made[c.Load]
		if c.ok() && (l.ID == 0 || l.Key != c.Key || l.Version != c.Version || l.Err != "") {
			v = append(v, broken(2, "a caller got version %d of %q from load %x, which did not make it", c.Version, c.Key, c.Load)...)
		}
	}
	return firstFew(v)
}

// lawNotOlder: calls that began after the instant got version or newer.
func lawNotOlder(law int, calls []Call, after instant, version int64) []violation {
	if n := countOlder(calls, after, version); n > 0 {
		return broken(law, "%d calls that began later got a version older than %d", n, version)
	}
	return nil
}

// countOlder counts the calls that began after the instant and got a version
// older than this.
func countOlder(calls []Call, after instant, version int64) (n int) {
	for _, c := range calls {
		if c.ok() && c.Start > after && c.Version < version {
			n++
		}
	}
	return n
}

// lawCoolDown: after a failed load of a key the next one does not begin before
// least has passed.
func lawCoolDown(loads []Load, least time.Duration) (v []violation) {
	failed := map[string]Load{}
	for _, l := range byStart(guardedLoads(loads)) {
		if f, ok := failed[l.Key]; ok && l.Start.sub(f.End) < least {
			v = append(v, broken(6, "server %d loaded %q %v after the load on server %d had failed", l.Worker, l.Key, l.Start.sub(f.End), f.Worker)...)
		}
		if l.Err != "" && l.End != 0 {
			failed[l.Key] = l
		}
	}
	return firstFew(v)
}

// lawAtOnce: no server runs more than limit loads at once.
func lawAtOnce(loads []Load, limit int) (v []violation) {
	for worker, own := range loadsByWorker(loads) {
		if n := mostAtOnce(own); n > limit {
			v = append(v, broken(7, "server %d ran %d loads at once, its limit is %d", worker, n, limit)...)
		}
	}
	return firstFew(v)
}

func loadsByWorker(loads []Load) map[int][]Load {
	by := map[int][]Load{}
	for _, l := range loads {
		by[l.Worker] = append(by[l.Worker], l)
	}
	return by
}

// mostAtOnce returns how many of the loads ran at the same time.
func mostAtOnce(loads []Load) (most int) {
	loads = byStart(loads)
	for i, l := range loads {
		n := 1
		for _, earlier := range loads[:i] {
			if earlier.End == 0 || earlier.End > l.Start {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// bursts returns how many groups of overlapping loads there are per key: one
// for every time that the key was found expired.
func bursts(loads []Load) (n int) {
	busyUntil := map[string]instant{}
	for _, l := range byStart(loads) {
		end, seen := busyUntil[l.Key]
		if !seen || l.Start > end {
			n++
		}
		busyUntil[l.Key] = max(end, l.End)
	}
	return n
}

func byStart(loads []Load) []Load {
	return slices.SortedStableFunc(slices.Values(loads), func(a, b Load) int { return int(a.Start.sub(b.Start)) })
}

// firstFew keeps a broken law from filling the report.
func firstFew(v []violation) []violation {
	const few = 3
	if len(v) <= few {
		return v
	}
	rest := violation{v[few].Law, fmt.Sprintf("and %d more like it", len(v)-few)}
	return append(v[:few:few], rest)
}
