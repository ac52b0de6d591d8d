package main

import (
	"testing"
	"time"
)

const msec = instant(time.Millisecond)

func load(id uint64, worker int, key string, start, end instant) Load {
	return Load{ID: id, Worker: worker, Key: key, Start: start * msec, End: end * msec}
}

func failedLoad(id uint64, worker int, start, end instant) Load {
	l := load(id, worker, "k", start, end)
	l.Err = "failed"
	return l
}

func call(key string, version int64, load uint64, start instant) Call {
	return Call{Key: key, Version: version, Load: load, Start: start * msec, End: (start + 1) * msec}
}

// TestLawChecks feeds every check a history that keeps the law and one that
// breaks it.
func TestLawChecks(t *testing.T) {
	one, two := load(1, 0, "k", 0, 200), load(2, 1, "k", 200, 400)
	overlapping := load(2, 1, "k", 199, 400)
	unended := load(1, 0, "k", 0, 0)
	failedCall := Call{Key: "k", Err: "no"}
	panicked := Call{Key: "k", Panicked: true, Err: "panic"}
	tests := []struct {
		name         string
		kept, broken []violation
	}{
		{"one load", lawOneLoad([]Load{two, one}), lawOneLoad([]Load{overlapping, one})},
		{"one load, unended", lawOneLoad([]Load{one, load(3, 0, "other", 100, 200)}), lawOneLoad([]Load{unended, two})},
		{"one load, long one first", lawOneLoad([]Load{one, two}), lawOneLoad([]Load{load(1, 0, "k", 0, 500), load(2, 1, "k", 100, 200), load(3, 2, "k", 300, 400)})},
		{"one load, without the store", lawOneLoad([]Load{one, {Alone: true, Key: "k", Start: 100 * msec, End: 300 * msec}}), lawOneLoad([]Load{one, overlapping})},
		{"loads", lawLoads(1, []Load{one}, 1), lawLoads(1, []Load{one, two}, 1)},
		{"no load", lawLoads(1, nil, 0), lawLoads(1, nil, 1)},
		{"loaded once", lawLoadedOnce([]Load{one}, []string{"k"}), lawLoadedOnce([]Load{one, two}, []string{"k"})},
		{"never loaded", nil, lawLoadedOnce([]Load{one}, []string{"k", "other"})},
		{"returned", lawReturned(4, 0), lawReturned(4, 1)},
		{"served", lawServed(4, []Call{call("k", 0, 1, 0)}), lawServed(4, []Call{call("k", 0, 1, 0), failedCall})},
		{"panics are not served", nil, lawServed(4, []Call{panicked})},
		{"someone served", lawSomeoneServed(6, []Call{failedCall, call("k", 0, 1, 0)}), lawSomeoneServed(6, []Call{failedCall})},
		{"real value", lawReal([]Call{call("k", 0, 1, 0)}, []Load{one}), lawReal([]Call{call("k", 7, 1, 0)}, []Load{one})},
		{"value of another key", nil, lawReal([]Call{call("other", 0, 1, 0)}, []Load{one})},
		{"value of a failed load", nil, lawReal([]Call{call("k", 0, 1, 0)}, []Load{failedLoad(1, 0, 0, 200)})},
		{"value from nowhere", nil, lawReal([]Call{call("k", 0, 9, 0)}, []Load{one})},
		{"not older", lawNotOlder(3, []Call{call("k", 1, 1, 0), call("k", 2, 2, 300)}, 250*msec, 2), lawNotOlder(3, []Call{call("k", 1, 1, 300)}, 250*msec, 2)},
		{"cool-down", lawCoolDown([]Load{failedLoad(1, 0, 0, 200), load(2, 1, "k", 1200, 1400)}, time.Second), lawCoolDown([]Load{failedLoad(1, 0, 0, 200), load(2, 1, "k", 1100, 1400)}, time.Second)},
		{"no cool-down after success", lawCoolDown([]Load{one, two}, time.Second), lawCoolDown([]Load{failedLoad(1, 0, 0, 200), failedLoad(2, 1, 1200, 1400), load(3, 1, "k", 1500, 1600)}, time.Second)},
		{"limit", lawAtOnce([]Load{one, load(2, 0, "b", 100, 300)}, 2), lawAtOnce([]Load{one, load(2, 0, "b", 100, 300)}, 1)},
		{"limit is per server", lawAtOnce([]Load{one, load(2, 1, "b", 100, 300)}, 1), lawAtOnce([]Load{unended, load(2, 0, "b", 900, 901)}, 1)},
		{"sits out", lawSitsOut([]Load{failedLoad(1, 0, 0, 200), load(2, 1, "k", 1200, 1400)}), lawSitsOut([]Load{failedLoad(1, 0, 0, 200), load(2, 0, "k", 1200, 1400)})},
		{"coalesced", lawCoalesced([]Load{one, overlapping}), lawCoalesced([]Load{one, load(2, 0, "k", 100, 300)})},
		{"left", lawLeft([]Call{{Err: "cancelled", End: 100 * msec}}, one), lawLeft([]Call{{Err: "cancelled", End: 300 * msec}}, one)},
		{"panic reaches its caller", lawPanicked([]Call{panicked}), lawPanicked([]Call{failedCall})},
		{"exclusive", lawExclusive([]Turn{{Got: 0, Ended: 1 * msec}, {Got: 1 * msec, Ended: 2 * msec}}), lawExclusive([]Turn{{Got: 0, Ended: 2 * msec}, {Got: 1 * msec, Ended: 3 * msec}})},
		{"hit", lawHit(Hits{}), lawHit(Hits{Err: "no"})},
		{"waiters", lawWaits(Waits{}), lawWaits(Waits{Err: "no"})},
	}
	for _, test := range tests {
		if len(test.kept) != 0 {
			t.Errorf("%s: a history that keeps the law is said to break it: %v", test.name, test.kept)
		}
		if len(test.broken) == 0 {
			t.Errorf("%s: a history that breaks the law is said to keep it", test.name)
		}
	}
}

func TestBursts(t *testing.T) {
	loads := []Load{load(1, 0, "k", 0, 200), load(2, 1, "k", 100, 300), load(3, 2, "k", 250, 260), load(4, 0, "k", 1000, 1200), load(5, 0, "other", 1000, 1200)}
	if n := bursts(loads); n != 3 {
		t.Errorf("got %d bursts, want 3", n)
	}
	if n := mostAtOnce(loads); n != 2 {
		t.Errorf("got %d loads at once, want 2", n)
	}
}

// TestFirstFew: a law that is broken a thousand times fits the report.
func TestFirstFew(t *testing.T) {
	v := lawServed(4, make([]Call, 1000))
	if len(v) != 0 {
		t.Fatalf("calls without an error are said to be unserved: %v", v)
	}
	calls := make([]Call, 1000)
	for i := range calls {
		calls[i].Err = "no"
	}
	if v = lawServed(4, calls); len(v) != 4 || v[3].Text != "and 997 more like it" {
		t.Errorf("got %v", v)
	}
}

// TestServedByStore: only calls after another server's value was seen count.
func TestServedByStore(t *testing.T) {
	own := Call{Worker: 1, Load: 1, Start: 0, End: 10}
	early := Call{Worker: 2, Err: "failed", Start: 5, End: 25}
	shared := Call{Worker: 2, Load: 1, Start: 15, End: 20}
	later := Call{Worker: 3, Err: "failed", Start: 21, End: 22}
	got := servedByStore([]Call{own, early, shared, later}, []Load{{ID: 1, Worker: 1}})
	if len(got) != 1 || got[0] != later {
		t.Errorf("got %v, want only %v", got, later)
	}
}
