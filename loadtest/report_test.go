package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pretend returns a scenario that has had this history.
func pretend(loads []Load, err error) scenario {
	return scenario{
		Name: "pretend", About: "a history made up", Contenders: []string{herdgate, noGuard},
		Run: func(_ *bench, contender string) (*result, error) {
			r := &result{Contender: contender, Curve: latencies{time.Millisecond}.points()}
			r.add(figLoads, count, float64(len(loads)))
			r.addNever(figAfterKill, millis)
			r.check(lawOneLoad(loads))
			return r, err
		},
		Targets: []target{atMost(figLoads, 1, "one load"), atMost(figAfterKill, 1, "soon")},
	}
}

func testBench(ctx context.Context) *bench {
	return &bench{ctx: ctx, addr: "127.0.0.1:1", progress: new(progress)}
}

// TestExitStatus: a broken law of herdgate decides, then what is missing; a
// missed target and another's loads do not.
func TestExitStatus(t *testing.T) {
	kept := []Load{load(1, 0, "k", 0, 200), load(2, 1, "k", 200, 400)}
	overlapping := []Load{load(1, 0, "k", 0, 200), load(2, 1, "k", 100, 300)}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeUp)
	tests := []struct {
		name   string
		ctx    context.Context
		run    scenario
		status int
	}{
		{"laws kept, targets missed", t.Context(), pretend(kept, nil), exitKept},
		{"law broken", t.Context(), pretend(overlapping, nil), exitBroken},
		{"measuring failed", t.Context(), pretend(kept, errors.New("no Redis")), exitIncomplete},
		{"a process died", t.Context(), pretend(kept, errCrashed), exitBroken},
		{"time up", ended, pretend(kept, nil), exitIncomplete},
		{"time up, law broken", ended, pretend(overlapping, nil), exitBroken},
	}
	for _, test := range tests {
		var out strings.Builder
		rep := testBench(test.ctx).runAll([]scenario{test.run}, &out)
		rep.summary(&out)
		if got := rep.status(); got != test.status {
			t.Errorf("%s: exit status %d, want %d\n%s", test.name, got, test.status, &out)
		}
	}
}

func TestJudge(t *testing.T) {
	own, other := &result{Contender: herdgate}, &result{Contender: plainGet}
	own.add("rate", perSecond, 90)
	own.add("time", millis, 12)
	other.add("rate", perSecond, 80)
	other.add("time", millis, 11)
	for _, test := range []struct {
		target target
		met    bool
	}{
		{atMost("time", 12, ""), true},
		{atMost("time", 11, ""), false},
		{target{Figure: "rate", Limit: figureOf(plainGet, "rate", 10), Least: true}, true},
		{target{Figure: "rate", Limit: figureOf(plainGet, "rate", 11), Least: true}, false},
		{target{Figure: "time", Limit: figureOf(plainGet, "time", 0)}, false},
		{target{Figure: "time", Limit: figureOf(plainGet, "time", 2)}, true},
	} {
		v := judge([]target{test.target}, []*result{own, other})
		if len(v) != 1 || v[0].Met != test.met {
			t.Errorf("%+v: got %v, want met %v", test.target, v, test.met)
		}
	}
	unknown := target{Figure: "time", Limit: figureOf(processOnly, "time", 0)}
	if v := judge([]target{unknown, atMost("no such figure", 1, "")}, []*result{own, other}); len(v) != 0 {
		t.Errorf("judged without the figures: %v", v)
	}
}

// TestReportNeedsNoNetwork: the page is whole, and so is the JSON.
func TestReportNeedsNoNetwork(t *testing.T) {
	rep := testBench(t.Context()).runAll([]scenario{pretend([]Load{load(1, 0, "k", 0, 1), load(2, 1, "k", 0, 1)}, nil)}, new(strings.Builder))
	dir := t.TempDir()
	if err := rep.write(dir, new(strings.Builder)); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fetched := range []string{"<script src", "<link", "@import"} {
		if bytes.Contains(page, []byte(fetched)) {
			t.Errorf("the page fetches something: %q", fetched)
		}
	}
	for _, shown := range []string{"echarts.init(", "a history made up", "Broken: pretend: law 1", "missed: " + figAfterKill + " never"} {
		if !bytes.Contains(page, []byte(shown)) {
			t.Errorf("the page does not show %q", shown)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Scenarios []struct {
			Results []struct {
				Figures []struct {
					Value *float64
					Never bool
				}
			}
		}
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	figures := back.Scenarios[0].Results[0].Figures
	if *figures[0].Value != 2 || figures[1].Value != nil || !figures[1].Never {
		t.Errorf("figures came back as %v", figures)
	}
}

func TestFigureText(t *testing.T) {
	for want, f := range map[string]figure{
		"1,234,567": {Value: 1234567},
		"-1,234":    {Value: -1234},
		"0":         {},
		"0.13 ms":   {Value: 0.1301, Unit: millis},
		"12.3 ms":   {Value: 12.34, Unit: millis},
		"1235 ms":   {Value: 1234.6, Unit: millis},
		"83,000/s":  {Value: 83000.4, Unit: perSecond},
		"112 B":     {Value: 112.3, Unit: bytesEach},
		"1.00×":     {Value: 1, Unit: ratio},
		"never":     {Never: true},
		"–":         {Value: median(nil)},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	names := func(f flags) string {
		chosen, err := choose(scenarios, f)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, s := range chosen {
			all = append(all, s.Name+"("+strings.Join(s.Contenders, ",")+")")
		}
		return strings.Join(all, " ")
	}
	for _, test := range []struct {
		flags flags
		want  string
	}{
		{flags{run: "panic", peers: "none"}, "panic(herdgate)"},
		{flags{run: "panic,cold", peers: "redsync, rueidisaside"}, "cold(herdgate,rueidisaside,redsync) panic(herdgate,rueidisaside,redsync)"},
		{flags{run: "panic", quick: true}, "panic(herdgate,no guard,process only)"},
		{flags{run: "hits", quick: true}, "hits(herdgate,go-redis GET,rueidisaside,go-redis/cache)"},
		{flags{run: "nothing"}, `loadtest: no scenario is called "nothing", see -list`},
		{flags{peers: "nobody"}, `loadtest: no contender is called "nobody", see -list`},
	} {
		if got := names(test.flags); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.flags, got, test.want)
		}
	}
}
