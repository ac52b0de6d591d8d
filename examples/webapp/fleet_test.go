package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/herdgate/herdgate/internal/servertest"
)

// startFleet starts the app on free ports, with few orders unless the test is
// about time.
func startFleet(t *testing.T, cfg config) *fleet {
	t.Helper()
	if cfg.orders == 0 {
		cfg.orders = 5000
	}
	f, err := start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// call returns what the replica says to a request.
func call(t *testing.T, method, url string) (status int, header http.Header, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(data)
}

// send lets a replica send a burst.
func send(t *testing.T, r *replica, query string) burst {
	t.Helper()
	status, _, body := call(t, http.MethodPost, r.url+"/burst?"+query)
	var b burst
	if err := json.Unmarshal([]byte(body), &b); status != http.StatusOK || err != nil {
		t.Fatalf("burst: status %d, error %v: %s", status, err, body)
	}
	return b
}

var stores = []struct {
	name string
	flag func(t *testing.T) string
}{
	{"memory", func(*testing.T) string { return "memory" }},
	{"redis", func(t *testing.T) string { return "redis://" + servertest.Redis(t).Addr + "/0" }},
	{"memcached", func(t *testing.T) string { return "memcached://" + servertest.Memcached(t).Addr }},
	{"two memcached", func(t *testing.T) string {
		return "memcached://" + servertest.Memcached(t).Addr + "," + servertest.Memcached(t).Addr
	}},
}

// TestStampede is what the app is there to show: without the guard every
// request of a burst computes the report, with it one of them does for all
// replicas.
func TestStampede(t *testing.T) {
	const n = 24
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			f := startFleet(t, config{store: s.flag(t), guard: true})

			off := send(t, f.replicas[0], "n=24&guard=off")
			if off.Runs != n || !maps.Equal(off.Answers, map[string]int{unguarded: n}) {
				t.Errorf("guard off: %+v, want %d runs", off, n)
			}
			on := send(t, f.replicas[1], "n=24")
			others := on.Answers["waited"] + on.Answers["fresh"]
			if on.Runs != 1 || on.Answers["loaded"] != 1 || others != n-1 {
				t.Errorf("guard on: %+v, want one run, one loaded, the others waited or fresh", on)
			}
			stale := send(t, f.replicas[2], "n=24&first=stale")
			if stale.Runs != 1 || stale.Answers["stale"] == 0 || stale.Answers["failed"] > 0 {
				t.Errorf("guard on, stale report: %+v, want one run and stale answers", stale)
			}
			fresh := send(t, f.replicas[0], "n=24&first=none")
			if fresh.Runs != 0 || fresh.Answers["fresh"] != n {
				t.Errorf("guard on, fresh report: %+v, want no run", fresh)
			}
		})
	}
}

// TestGuardSwitches: the flag decides, unless the request does.
func TestGuardSwitches(t *testing.T) {
	for _, flag := range []bool{true, false} {
		f := startFleet(t, config{store: "memory", guard: flag})
		for _, r := range f.replicas {
			for query, guarded := range map[string]bool{"": flag, "?guard=on": true, "?guard=off": false} {
				_, header, body := call(t, http.MethodGet, r.url+"/report"+query)
				if outcome := header.Get(outcomeHeader); (outcome != unguarded) != guarded {
					t.Errorf("-guard=%v, /report%s: outcome %q: %s", flag, query, outcome, body)
				}
			}
		}
	}
}

// TestPage: every replica serves the page and its files, and knows the others.
func TestPage(t *testing.T) {
	f := startFleet(t, config{store: "memory", guard: true})
	for _, r := range f.replicas {
		status, _, page := call(t, http.MethodGet, r.url+"/")
		if status != http.StatusOK || !strings.Contains(page, "through the guard") {
			t.Fatalf("status %d: %s", status, page)
		}
		for _, other := range f.replicas {
			if !strings.Contains(page, `href="`+other.url+`/"`) {
				t.Errorf("replica %d's page does not link to %s", r.index+1, other.url)
			}
		}
		for name, kind := range map[string]string{"page.css": "text/css", "page.js": "javascript", "timeline.js": "javascript"} {
			status, header, _ := call(t, http.MethodGet, r.url+"/"+name)
			if status != http.StatusOK || !strings.Contains(header.Get("Content-Type"), kind) {
				t.Errorf("%s: status %d, %v", name, status, header)
			}
		}
	}
	checked := `type="checkbox" checked`
	if _, _, page := call(t, http.MethodGet, f.replicas[0].url+"/"); !strings.Contains(page, checked) {
		t.Error("the page does not show that the guard is on")
	}
	if _, _, page := call(t, http.MethodGet, f.replicas[0].url+"/?guard=off"); strings.Contains(page, checked) {
		t.Error("the page does not show that the guard is off")
	}
}

// TestNews: the page is told everything once, by any replica, and the counts of
// all time.
func TestNews(t *testing.T) {
	f := startFleet(t, config{store: "memory", guard: true})
	ask := func(r *replica, next string) (n news) {
		_, _, body := call(t, http.MethodGet, r.url+"/news?next="+next)
		if err := json.Unmarshal([]byte(body), &n); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return n
	}
	call(t, http.MethodGet, f.replicas[0].url+"/report")
	first := ask(f.replicas[1], "0")
	if len(first.Recent) != 2 || first.Next != 2 || first.Runs[0] != 1 || first.Answers[0]["loaded"] != 1 {
		t.Errorf("after a load: %+v", first)
	}
	call(t, http.MethodGet, f.replicas[2].url+"/report")
	second := ask(f.replicas[1], "2")
	if len(second.Recent) != 1 || second.Recent[0].What != "fresh" || second.Recent[0].Replica != 2 {
		t.Errorf("after a hit: %+v", second)
	}
}

// TestRefuses: what cannot be meant is answered with what could.
func TestRefuses(t *testing.T) {
	f := startFleet(t, config{store: "memory", guard: true})
	f.bursting.Lock()
	defer f.bursting.Unlock()
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{http.MethodGet, "/report?guard=maybe", http.StatusBadRequest, "want on or off"},
		{http.MethodGet, "/?guard=maybe", http.StatusBadRequest, "want on or off"},
		{http.MethodPost, "/burst?n=0", http.StatusBadRequest, "want 1 to 1000"},
		{http.MethodPost, "/burst?n=many", http.StatusBadRequest, "want 1 to 1000"},
		{http.MethodPost, "/burst?n=1001", http.StatusBadRequest, "want 1 to 1000"},
		{http.MethodPost, "/burst?first=warm", http.StatusBadRequest, "want cold, stale or none"},
		{http.MethodPost, "/burst", http.StatusConflict, "another burst"},
		{http.MethodGet, "/burst", http.StatusMethodNotAllowed, ""},
	} {
		status, _, body := call(t, c.method, f.replicas[0].url+c.path)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: status %d, %s; want %d and %q", c.method, c.path, status, body, c.status, c.want)
		}
	}
}

// TestCloseLeavesNothing: no goroutine, no file, no port.
func TestCloseLeavesNothing(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			flag := s.flag(t)
			http.DefaultClient.CloseIdleConnections()
			before := runtime.NumGoroutine()
			f, err := start(t.Context(), config{store: flag, guard: true, orders: 1000})
			if err != nil {
				t.Fatal(err)
			}
			send(t, f.replicas[0], "n=12")
			send(t, f.replicas[0], "n=12&first=stale")
			if err := f.close(); err != nil {
				t.Error(err)
			}
			http.DefaultClient.CloseIdleConnections()
			for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
				if time.Now().After(deadline) {
					stacks := make([]byte, 1<<20)
					t.Fatalf("%d goroutines before, now:\n%s", before, stacks[:runtime.Stack(stacks, true)])
				}
				time.Sleep(10 * time.Millisecond)
			}
			if _, err := os.Stat(f.config.path); !os.IsNotExist(err) {
				t.Errorf("%s: got %v, want it removed", f.config.path, err)
			}
			if response, err := http.Get(f.replicas[0].url); err == nil {
				response.Body.Close()
				t.Error("replica 1 still answers")
			}
		})
	}
}
