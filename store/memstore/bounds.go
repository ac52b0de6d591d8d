package memstore

// overhead estimates what the store needs for an entry beside key and value.
const overhead = 160

func size(key string, value []byte) int64 {
	return int64(len(key)) + int64(len(value)) + overhead
}

func (sh *shard) add(key string) *record {
	r := &record{key: key, pos: len(sh.ring)}
	sh.records[key] = r
	sh.ring = append(sh.ring, r)
	return r
}

// dropIfEmpty forgets r if nothing is left in it.
func (sh *shard) dropIfEmpty(r *record) {
	if b := r.busy; b != nil && b.lease.grant == 0 && len(b.failure.data) == 0 && len(b.queue) == 0 && len(b.watches) == 0 {
		r.busy = nil
	}
	if r.filled || r.busy != nil || sh.records[r.key] != r {
		return
	}
	delete(sh.records, r.key)
	last := sh.ring[len(sh.ring)-1]
	sh.ring[r.pos], last.pos = last, r.pos
	sh.ring[len(sh.ring)-1] = nil
	sh.ring = sh.ring[:len(sh.ring)-1]
}

// next returns the record under the hand and moves the hand on. The ring must
// not be empty.
func (sh *shard) next(hand *int) *record {
	if *hand >= len(sh.ring) {
		*hand = 0
	}
	r := sh.ring[*hand]
	*hand++
	return r
}

// sweepSteps is how many records each write looks at. With two or more, what
// is over goes faster than new records come.
const sweepSteps = 3

// sweep removes what is over from the next few records of the shard.
func (v *visit) sweep() {
	for range sweepSteps { // the ring has v.r at least
		r := v.sh.next(&v.sh.swept)
		if r == v.r {
			continue
		}
		other := visit{s: v.s, sh: v.sh, r: r, sent: v.sent, now: v.now}
		other.settle()
		v.sh.dropIfEmpty(r)
	}
}

// trim drops entries until the store is within its bounds again. It takes one
// from the shard of keep, which was just written and stays, then one from each
// of the others in turn. So a full store takes from each shard what it puts
// there, and no shard runs dry.
func (s *Store) trim(keep *record) {
	if !s.full() {
		return
	}
	at := s.index(keep.key)
	for idle := 0; s.full() && idle < shardCount; at++ {
		idle++
		if s.evict(&s.shards[at%shardCount], keep) {
			idle = 0
		}
	}
}

func (s *Store) full() bool {
	return s.entries.Load() > s.maxEntries || s.bytes.Load() > s.maxBytes
}

// evict drops one entry of the shard that was not read since the hand last
// came by ("second chance"), and reports whether there was any to drop. An
// entry that nobody has read yet has no second chance, so that a scan of many
// keys does not drive out what is read often.
func (s *Store) evict(sh *shard, keep *record) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for range 2 * len(sh.ring) {
		r := sh.next(&sh.hand)
		if !r.filled || r == keep || r.used.Swap(false) {
			continue
		}
		v := visit{s: s, sh: sh, r: r}
		v.unfill()
		sh.dropIfEmpty(r)
		return true
	}
	return false
}
