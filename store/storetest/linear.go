package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/herdgate/herdgate/store"
)

const (
	historyRounds  = 6  // histories per case
	historyClients = 5  // who make one history together
	historyCalls   = 25 // of each client
)

// input is one call of a history.
type input struct {
	name  string
	token store.Token
	grant uint64
	seen  store.Token // of a claim
	fails bool        // of a yield
}

// output is its answer. A call whose reply was lost has the name "unknown": it
// may have been done at any time since, or never.
type output struct {
	name    string
	grant   uint64
	version store.Token
}

func (o output) unknown() bool { return o.name == "unknown" }

// history records the calls on one key with the order in which they began and
// ended.
type history struct {
	clock atomic.Int64
	steps bool       // see Backend.ClaimsInSteps
	mu    sync.Mutex // protects calls
	calls []porcupine.Operation
}

// call makes and records one call.
func (h *history) call(client int, in input, do func() output) output {
	began := h.clock.Add(1)
	out := do()
	ended := h.clock.Add(1)
	if out.unknown() {
		ended = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: in, Call: began, Output: out, Return: ended})
	if h.steps && in.name == "claim" && !in.seen.IsZero() && !out.unknown() {
		// It may have had a lease for a while before it was answered.
		first := output{name: "unknown"}
		h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: in, Call: began, Output: first, Return: ended})
	}
	return out
}

// check fails the case if no order of the calls explains the answers.
func (h *history) check(t *run, seed uint64, m porcupine.Model) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(m, h.calls, 2*time.Minute) {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		t.Fatalf("seed %d: could not tell in time whether %d calls can be put in an order", seed, len(h.calls))
	}
	var b strings.Builder
	for _, c := range h.calls {
		in, out := c.Input.(input), c.Output.(output)
		fmt.Fprintf(&b, "%5d-%-5d client %d: %s by %s/%d seen %s = %s %d %s\n", c.Call, min(c.Return, 99999), c.ClientId,
			in.name, name(in.token), in.grant, name(in.seen), out.name, out.grant, name(out.version))
	}
	t.Fatalf("seed %d: no order of these calls explains the answers:\n%s", seed, b.String())
}

// lossy loses some requests and some replies.
func lossy(rng *rand.Rand) Injector {
	var mu sync.Mutex // protects rng
	return func(op Op) Fault {
		if op.Name == "Event" || op.Name == "Watch" {
			return Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(20) > 0 {
			return Fault{}
		}
		return Fault{Applied: rng.IntN(3) > 0, Err: ErrFault}
	}
}

// histories lets clients make histories together and checks each. client
// returns what one client does with its next call.
func (t *run) histories(m porcupine.Model, client func(h *history, rng *rand.Rand, key string, id int) (next func())) {
	t.Helper()
	for range historyRounds {
		seed, key, h := t.seed(), t.key(), &history{steps: t.b.ClaimsInSteps}
		var clients sync.WaitGroup
		for id := range historyClients {
			next := client(h, rand.New(rand.NewPCG(seed, uint64(id))), key, id)
			clients.Go(func() {
				for range historyCalls {
					next()
				}
			})
		}
		clients.Wait()
		h.check(t, seed, m)
	}
}

// leased turns the answer to a request for a lease into an output.
func leased(l store.Lease, err error) output {
	var held *store.HeldError
	switch {
	case err == nil:
		return output{name: "granted", grant: l.Grant}
	case errors.As(err, &held):
		return output{name: "held", grant: held.Holder.Grant}
	}
	return ended(err)
}

// ended turns the answer of a call that returns only an error into an output.
func ended(err error) output {
	switch {
	case err == nil:
		return output{name: "ok"}
	case errors.Is(err, store.ErrLost):
		return output{name: "lost"}
	}
	return output{name: "unknown"}
}
