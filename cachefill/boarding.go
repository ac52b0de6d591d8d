package cachefill

import "time"

// seal makes everybody who has come so far present: what the claim that is
// about to be sent brings is new enough for them.
func (f *flight) seal() {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if f.slot.flight != f || f.alone {
		return
	}
	f.admit(f.slot.late)
	f.slot.late = nil
	f.epoch = f.sh.epoch
}

// admit makes the callers of b present. The shard is locked, or f unknown to
// others.
func (f *flight) admit(b *batch) {
	if b == nil {
		return
	}
	for _, s := range b.seats {
		s.flight = f
		f.e.arm(s, f.key)
	}
	f.present = append(f.present, b.seats...)
	f.urgent = f.urgent || b.urgent
	f.spent = max(f.spent, b.spent)
}

// callers returns how many wait for f. The shard is locked.
func (f *flight) callers() (n int) {
	for _, s := range f.present {
		n += s.n
	}
	if f.slot.flight == f && f.slot.late != nil {
		for _, s := range f.slot.late.seats {
			n += s.n
		}
	}
	return n
}

// hurry lets a flight that queues for a slot start. The shard is locked.
func (f *flight) hurry() {
	if !f.isRushed {
		f.isRushed = true
		close(f.rush)
	}
}

// abandon tells f that nobody waits for it. The shard is locked.
func (f *flight) abandon() {
	if !f.isDropped {
		f.isDropped = true
		close(f.abandoned)
	}
}

// detach takes f off its slot: newcomers begin anew, without waiting for its
// end. The shard is locked.
func (f *flight) detach() {
	if f.slot.flight == f {
		f.slot.flight = nil
		f.releaseLate()
	}
}

// releaseLate has the late callers look, without waiting for the flight's end.
// The shard is locked.
func (f *flight) releaseLate() {
	sl := f.slot
	if sl.late == nil {
		return
	}
	for _, s := range sl.late.seats {
		s.waited = true
	}
	batchAt(&sl.next).merge(sl.late)
	sl.late = nil
	if sl.looking == nil {
		f.e.startLook(f.key, f.sh, sl)
	}
}

// end is the end of every flight: who came late looks again.
func (f *flight) end() {
	f.giveSlotBack()
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	f.answerPresent(verdict{again: true, spent: f.spent}) // nobody is left behind
	f.detach()
	f.sh.forget(f.key, f.slot)
}

// finishPresent answers the present callers.
func (f *flight) finishPresent(v verdict) {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	f.answerPresent(v)
}

// answerPresent answers the present callers. The shard is locked.
func (f *flight) answerPresent(v verdict) {
	v.spent = f.spent
	if f.unreachable != nil && v.result.outcome == Waited {
		v.result.outcome = Degraded
	}
	endAll(f.present, v)
	f.present = nil
}

// answerContent answers those present callers who accept an older value. The
// shard is locked.
func (f *flight) answerContent(v verdict) {
	demanding := f.present[:0]
	for _, s := range f.present {
		if s.fresh {
			demanding = append(demanding, s)
			continue
		}
		s.end(v)
	}
	f.present = demanding
}

// stayQuiet remembers why the key is not to be loaded for a while. The shard
// is locked.
func (f *flight) stayQuiet(failed *failure, d time.Duration) {
	if d <= 0 || f.alone || f.void {
		return
	}
	f.slot.quiet = quiet{failure: failed, until: time.Now().Add(d)}
	time.AfterFunc(d, func() {
		f.sh.mu.Lock()
		defer f.sh.mu.Unlock()
		f.sh.forget(f.key, f.slot)
	})
}
