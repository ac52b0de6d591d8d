package main

import (
	"maps"
	"sync"
	"time"
)

// kept is how many happenings the journal remembers for the page.
const kept = 4096

// unguarded is the outcome of a request that computed the report itself,
// because the guard was off. The other outcomes are those of cachefill.
const unguarded = "unguarded"

// happening is one thing that a replica did: it answered a request, or ran the
// aggregate. Its times are milliseconds, At since the journal was begun.
type happening struct {
	Replica int     `json:"replica"` // its index
	What    string  `json:"what"`    // an outcome, or "run"
	At      float64 `json:"at"`
	Took    float64 `json:"took"`
}

// journal is what the page shows. All replicas write into it: it is the one
// thing besides the store that they share, and nothing they decide on.
type journal struct {
	begun time.Time

	mu      sync.Mutex // protects what follows
	first   int        // how many happenings were forgotten
	recent  []happening
	answers []map[string]int // by replica: requests by outcome
	runs    []int            // by replica: aggregates begun
	running map[int]happening
	lastRun int // the key of the newest of running
}

func newJournal(replicas int) *journal {
	j := &journal{begun: time.Now(), runs: make([]int, replicas), running: make(map[int]happening)}
	for range replicas {
		j.answers = append(j.answers, make(map[string]int))
	}
	return j
}

// answered notes that a request got its answer.
func (j *journal) answered(replica int, outcome string, began time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers[replica][outcome]++
	j.add(replica, outcome, began)
}

// run notes that an aggregate begins; ended must be called when it is over.
func (j *journal) run(replica int) (ended func()) {
	began := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lastRun++
	id := j.lastRun
	j.runs[replica]++
	j.running[id] = happening{Replica: replica, What: "run", At: j.since(began)}
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.running, id)
		j.add(replica, "run", began)
	}
}

// allRuns is how many aggregates have begun on all replicas.
func (j *journal) allRuns() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	sum := 0
	for _, n := range j.runs {
		sum += n
	}
	return sum
}

// news is what the page asks for.
type news struct {
	Now     float64          `json:"now"`
	Next    int              `json:"next"`   // what to ask for next time
	Recent  []happening      `json:"recent"` // over, oldest first
	Running []happening      `json:"running"`
	Answers []map[string]int `json:"answers"`
	Runs    []int            `json:"runs"`
}

// newsFrom returns what happened from number next on, and the counts of all time.
func (j *journal) newsFrom(next int) news {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := news{
		Now:     j.since(time.Now()),
		Next:    j.first + len(j.recent),
		Recent:  []happening{},
		Running: []happening{},
		Runs:    append([]int(nil), j.runs...),
	}
	if from := max(next-j.first, 0); from < len(j.recent) {
		n.Recent = append(n.Recent, j.recent[from:]...)
	}
	for _, h := range j.running {
		n.Running = append(n.Running, h)
	}
	for _, counts := range j.answers {
		n.Answers = append(n.Answers, maps.Clone(counts))
	}
	return n
}

// add remembers something that is over now. j.mu is held.
func (j *journal) add(replica int, what string, began time.Time) {
	if len(j.recent) == kept {
		j.first += kept / 2
		j.recent = append(j.recent[:0:0], j.recent[kept/2:]...)
	}
	at, now := j.since(began), j.since(time.Now())
	j.recent = append(j.recent, happening{Replica: replica, What: what, At: at, Took: now - at})
}

// since returns t as the journal counts it.
func (j *journal) since(t time.Time) float64 {
	return float64(t.Sub(j.begun).Microseconds()) / 1000
}
