package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	guardServers = 4
	guardCallers = 4
	guardHold    = time.Millisecond

	figTurns     = "turns"
	figWaitMost  = "longest wait"
	figWaitFair  = "longest wait / fair share"
	figFewest    = "fewest turns of a caller"
	figMostTurns = "most turns of a caller"
	figHandOver  = "hand-over p50"
	figHand99    = "hand-over p99"
	figSentTurn  = "commands sent per turn"
)

// contendedGuard: everybody wants the same lease, all the time.
var contendedGuard = scenario{
	Name:       "guard",
	About:      "4 processes × 4 callers take one lease in turn, hold it for 1 ms, and want it again at once",
	Contenders: []string{herdgate, redsyncCheck, bsmRedislock},
	Run:        runGuard,
	AlwaysAll:  true,
	Targets: []target{
		atMost(figWaitFair, 5, "no wait over 5 × the fair share"),
		atMost(figHandOver, 1, "≤ 1 ms"),
		atMost(figSentTurn, 2.5, "≤ 2.5 commands"),
	},
}

// TurnSpec says how a lease is contended for.
type TurnSpec struct {
	Name    string
	Callers int
	At      instant // of the start
	For     time.Duration
	Hold    time.Duration
}

// Turn is one time that a caller had the lease.
type Turn struct {
	Worker, Caller    int
	Asked, Got, Ended instant // Ended: before the lease was released
}

// Turns is what the callers of one worker had.
type Turns struct {
	Turns []Turn
	Err   string
}

func runGuard(b *bench, contender string) (*result, error) {
	f, err := startFleet(b.ctx, guardServers, Setup{Contender: contender, Redis: b.addr, Locks: true})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	spec := TurnSpec{
		Name: b.key("guard"), Callers: guardCallers, Hold: guardHold,
		For: pick(b, 10*time.Second, 2*time.Second),
	}
	r := &result{Contender: contender}
	turns, err := b.turns(f, r, spec)
	if err != nil {
		return nil, err
	}
	reportTurns(r, turns)
	// Once more, shorter, under MONITOR, which slows Redis down.
	counter, err := countCommands(b.ctx, b.addr)
	if err != nil {
		return nil, err
	}
	defer counter.Close()
	before, err := counter.Count(b.ctx)
	if err != nil {
		return nil, err
	}
	spec.Name, spec.For = b.key("guard"), pick(b, 2*time.Second, time.Second)
	counted, err := b.turns(f, r, spec)
	if err != nil {
		return nil, err
	}
	after, err := counter.Count(b.ctx)
	if err != nil {
		return nil, err
	}
	d := after.since(before)
	r.add(figSentTurn, ratio, float64(d.sent())/float64(max(len(counted), 1)))
	r.note("commands sent in %s turns: %s", grouped(int64(len(counted))), tallied(d.byName))
	return r, nil
}

// turns lets all callers contend and returns their turns, in order.
func (b *bench) turns(f *Fleet, r *result, spec TurnSpec) (all []Turn, err error) {
	spec.At = now().add(50 * time.Millisecond)
	parts := make([]Turns, len(f.servers))
	err = f.each(f.servers, func(s *Server) error { return s.call(b.ctx, "Turns", spec, &parts[s.n]) })
	for _, p := range parts {
		all = append(all, p.Turns...)
		if p.Err != "" {
			r.note("error: %s", p.Err)
			r.check(broken(1, "a caller got no turn but: %s", p.Err))
		}
	}
	slices.SortFunc(all, func(a, b Turn) int { return int(a.Got.sub(b.Got)) })
	r.check(lawExclusive(all))
	return all, err
}

// lawExclusive: turns do not overlap.
func lawExclusive(turns []Turn) (v []violation) {
	for i := 1; i < len(turns); i++ {
		if a, b := turns[i-1], turns[i]; b.Got < a.Ended {
			v = append(v, broken(1, "caller %d of server %d got the lease %v before caller %d of server %d had ended its turn",
				b.Caller, b.Worker, a.Ended.sub(b.Got), a.Caller, a.Worker)...)
		}
	}
	return firstFew(v)
}

func reportTurns(r *result, turns []Turn) {
	if len(turns) == 0 {
		r.add(figTurns, count, 0)
		return
	}
	callers := map[[2]int]int{}
	var waits, hands latencies
	for i, t := range turns {
		callers[[2]int{t.Worker, t.Caller}]++
		waits = append(waits, t.Got.sub(t.Asked))
		if i > 0 {
			hands = append(hands, max(t.Got.sub(turns[i-1].Ended), 0))
		}
	}
	slices.Sort(waits)
	slices.Sort(hands)
	took := turns[len(turns)-1].Ended.sub(turns[0].Got)
	fair := took / time.Duration(len(turns)) * guardServers * guardCallers // each in turn
	fewest, most := len(turns), 0
	for _, n := range callers {
		fewest, most = min(fewest, n), max(most, n)
	}
	if len(callers) < guardServers*guardCallers {
		fewest = 0
	}
	r.Curve = waits.points()
	r.add(figTurns, count, float64(len(turns)))
	r.addQuantile(figWaitMost, waits, 1)
	r.add(figWaitFair, ratio, float64(waits.longest())/float64(fair))
	r.add(figFewest, count, float64(fewest))
	r.add(figMostTurns, count, float64(most))
	r.addQuantile(figHandOver, hands, 0.5)
	r.addQuantile(figHand99, hands, 0.99)
}

// Turns lets the callers of this worker contend for a lease. Callers who wait
// when the time is up get their turn still: their wait counts.
func (w *worker) Turns(spec TurnSpec, out *Turns) error {
	ctx, cancel := context.WithTimeout(context.Background(), spec.For+defaultBound)
	defer cancel()
	<-spec.At.wait()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for caller := range spec.Callers {
		wg.Go(func() {
			turns, err := w.takeTurns(ctx, spec, caller)
			mu.Lock()
			defer mu.Unlock()
			out.Turns = append(out.Turns, turns...)
			if err != nil {
				out.Err = firstLine(fmt.Sprint(err))
			}
		})
	}
	wg.Wait()
	return nil
}

func (w *worker) takeTurns(ctx context.Context, spec TurnSpec, caller int) (turns []Turn, err error) {
	for now().sub(spec.At) < spec.For {
		t := Turn{Worker: w.setup.Worker, Caller: caller, Asked: now()}
		unlock, err := w.locker.Lock(ctx, spec.Name)
		if err != nil {
			return turns, err
		}
		t.Got = now()
		time.Sleep(spec.Hold)
		t.Ended = now()
		turns = append(turns, t)
		if err := unlock(ctx); err != nil {
			return turns, err
		}
	}
	return turns, nil
}
