package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// parentEnv makes the test program a bench with a fleet, to be killed.
const parentEnv = "HERDGATE_LOADTEST_PARENT"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(workerEnv) != "":
		main()
	case os.Getenv(parentEnv) != "":
		startAndHang()
	default:
		os.Exit(m.Run())
	}
}

// startAndHang starts a server process, prints its process id and never ends.
func startAndHang() {
	f, err := startFleet(context.Background(), 1, Setup{Contender: singleFlight})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.servers[0].cmd.Process.Pid)
	select {}
}

// smallBench is a bench of two servers on a Redis of its own.
func smallBench(t *testing.T) *bench {
	t.Helper()
	b, err := newBench(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	b.servers, b.callers, b.repeat, b.quick = 2, 10, 2, true
	return b
}

// TestCold runs a whole scenario: real processes, a real Redis, one load.
func TestCold(t *testing.T) {
	s := coldKey
	s.Contenders = []string{herdgate}
	var out strings.Builder
	rep := smallBench(t).runAll([]scenario{s}, &out)
	if status := rep.status(); status != exitKept {
		rep.summary(&out)
		t.Fatalf("exit status %d:\n%s", status, &out)
	}
	if f, ok := rep.Sections[0].Results[0].figure(figOnce); !ok || f.Value != 2 {
		t.Errorf("%v repetitions of 2 loaded once", f)
	}
}

// TestStampedeIsSeen: a fleet without a guard, taken for herdgate, breaks the
// law, and the run ends with a status that says so.
func TestStampedeIsSeen(t *testing.T) {
	b := smallBench(t)
	s := scenario{
		Name: "unguarded", Contenders: []string{herdgate},
		Run: func(b *bench, contender string) (*result, error) {
			f, err := b.fleet(noGuard, Tuning{})
			if err != nil {
				return nil, err
			}
			defer f.Stop()
			r := &result{Contender: contender}
			_, n, err := stampede(b, f, r)
			if n < 2 {
				t.Errorf("%d loads without a guard", n)
			}
			return r, err
		},
	}
	var out strings.Builder
	rep := b.runAll([]scenario{s}, &out)
	if status := rep.status(); status != exitBroken || !strings.Contains(out.String(), "BROKEN law 1") {
		t.Errorf("exit status %d, want %d:\n%s", status, exitBroken, &out)
	}
}

// TestKilledServer: what a killed server began is known, what it did not end is
// not, and the others are not disturbed.
func TestKilledServer(t *testing.T) {
	ctx := t.Context()
	f, err := startFleet(ctx, 2, Setup{Contender: singleFlight})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	run, err := f.Begin(ctx, Job{Callers: 3, Keys: []string{"k"}, Calls: 1, Load: LoadSpec{Takes: time.Hour}}, f.servers[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.AwaitLoad(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	f.servers[0].Crash()
	if calls, stuck, err := run.Wait(); len(calls) != 0 || stuck != 0 || err != nil {
		t.Errorf("a killed server answers: %d calls, %d stuck, %v", len(calls), stuck, err)
	}
	calls, _, err := f.Do(ctx, Job{Callers: 3, Keys: []string{"k"}, Calls: 2}, f.servers[1])
	if err != nil || len(calls) != 6 || failures(calls) != 0 {
		t.Errorf("the other server: %d calls, %d failures, %v", len(calls), failures(calls), err)
	}
	loads := f.Loads("k")
	if len(loads) < 2 || loads[0].End != 0 || loads[1].Worker != 1 || loads[1].End == 0 {
		t.Errorf("got loads %+v", loads)
	}
}

// TestStuckCallers: callers who do not come back when their time is up are
// counted, and the run goes on.
func TestStuckCallers(t *testing.T) {
	f, err := startFleet(t.Context(), 1, Setup{Contender: singleFlight})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	calls, stuck, err := f.Do(t.Context(), Job{
		Callers: 3, Keys: []string{"k"}, Calls: 1, Bound: 10 * time.Millisecond,
		Load: LoadSpec{Ending: Hang},
	})
	if len(calls) != 0 || stuck != 3 || err != nil {
		t.Errorf("got %d calls, %d stuck, %v; want 3 stuck", len(calls), stuck, err)
	}
}

// TestCrashIsTold: a server that dies by itself is an error with what it said.
func TestCrashIsTold(t *testing.T) {
	f, err := startFleet(t.Context(), 1, Setup{Contender: singleFlight})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	_ = f.servers[0].cmd.Process.Kill()
	_, _, err = f.Do(t.Context(), Job{Callers: 1, Keys: []string{"k"}, Calls: 1})
	if err == nil || !strings.Contains(err.Error(), errCrashed.Error()) {
		t.Errorf("got %v, want %v", err, errCrashed)
	}
}

// TestNoOrphans: a bench that is killed takes its servers along.
func TestNoOrphans(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid := strings.TrimSpace(line)
	if err != nil || !alive(pid) {
		t.Fatalf("no server process %q runs: %v", pid, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for end := time.Now().Add(10 * time.Second); alive(pid); {
		if time.Now().After(end) {
			t.Fatalf("server process %s outlives its bench", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alive reports whether a process runs and is no zombie.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
