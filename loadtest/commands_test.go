package main

import (
	"maps"
	"testing"
)

// TestMonitorLines: what scripts call, what sets up connections, and what the
// counter sends is not counted.
func TestMonitorLines(t *testing.T) {
	mark := make(chan struct{})
	c := &commandCounter{sent: map[string]int{}, marks: map[string]chan struct{}{`"mark-1"`: mark}}
	for _, line := range []string{
		`+1339518083.107412 [0 127.0.0.1:60866] "GET" "a [0 lua] key"`,
		`+1339518083.107412 [0 127.0.0.1:60866] "get" "k"`,
		`+1339518083.107413 [0 lua] "get" "k"`,
		`+1339518083.107414 [0 127.0.0.1:60866] "evalsha" "abc" "1" "k"`,
		`+1339518083.107414 [0 127.0.0.1:60866] "hello" "3"`,
		`+1339518083.107414 [0 127.0.0.1:60866] "client" "SETINFO" "LIB-NAME" "x"`,
		`+1339518083.107414 [0 127.0.0.1:60866] "CLIENT" "CACHING" "YES"`,
		`+1339518083.107414 [0 127.0.0.1:60866] "info" "stats"`,
		`+1339518083.107414 [0 127.0.0.1:60866] "echo" "mark-1"`,
		`-ERR something else`,
		``,
	} {
		c.note(line + "\r\n")
	}
	want := map[string]int{"get": 2, "evalsha": 1, "client caching": 1}
	if !maps.Equal(c.sent, want) {
		t.Errorf("counted %v, want %v", c.sent, want)
	}
	select {
	case <-mark:
	default:
		t.Error("the mark was not seen")
	}
}

func TestTallySince(t *testing.T) {
	before := tally{map[string]int{"get": 3, "set": 1}, 10}
	after := tally{map[string]int{"get": 8, "set": 1, "del": 2}, 30}
	d := after.since(before)
	if d.sent() != 7 || d.processed != 18 || tallied(d.byName) != "5 get, 2 del" {
		t.Errorf("got %d sent, %d processed, %s", d.sent(), d.processed, tallied(d.byName))
	}
}
