package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/store/redisstore"
)

// childEnv makes this test program a process that takes leases. Its value is
// the role, and the address of the Redis server.
const childEnv = "HERDGATE_GUARD_CHILD"

func TestMain(m *testing.M) {
	role, addr, ok := strings.Cut(os.Getenv(childEnv), " ")
	if !ok {
		os.Exit(m.Run())
	}
	roles := map[string]func(*Guard, *redis.Client) any{"hold": hold1, "contend": contendMuch}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	var commands countingHook
	rdb.AddHook(&commands)
	s, err := redisstore.New(rdb, &redisstore.Options{Fences: true})
	must(err)
	g, err := New(s, &Options{TTL: childTTL, Fence: true})
	must(err)
	report := roles[role](g, redis.NewClient(&redis.Options{Addr: addr}))
	if c, ok := report.(*contended); ok {
		c.Commands = commands.n.Load()
	}
	must(json.NewEncoder(os.Stdout).Encode(report))
	must(g.Close(context.Background()))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childTTL is short, for the parent waits for it to be over.
const childTTL = time.Second

// countingHook counts the commands that a client sends.
type countingHook struct{ n atomic.Int64 }

func (h *countingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *countingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}

func (h *countingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// ended is what a holder reports when its lease has ended.
type ended struct {
	Cause string
	Fence uint64
}

// hold1 holds the lease until it is lost.
func hold1(g *Guard, _ *redis.Client) any {
	l, err := g.Acquire(context.Background(), "x", nil)
	must(err)
	fmt.Println("held")
	<-l.Done()
	return ended{context.Cause(l.Context()).Error(), l.Fence()}
}

// contended is what a process reports of many short leases.
type contended struct {
	Turns    []turn
	Commands int64
}

// turn is one lease of one caller.
type turn struct {
	Caller string
	Number int           // counted at Redis, unprotected but for the lease
	Hand   time.Duration // since the holder before let go; zero for the first
}

const (
	callersPerProcess = 4
	turnsPerCaller    = 100
	work              = time.Millisecond
)

// contendMuch takes the lease with some callers, again and again.
func contendMuch(g *Guard, rdb *redis.Client) any {
	var mu sync.Mutex
	var all contended
	var wg sync.WaitGroup
	fmt.Println("ready")
	for i := range callersPerProcess {
		caller := fmt.Sprintf("%d/%d", os.Getpid(), i)
		wg.Go(func() {
			for range turnsPerCaller {
				must(g.Do(context.Background(), "x", func(ctx context.Context) error {
					t, err := takeTurn(ctx, rdb, caller)
					mu.Lock()
					all.Turns = append(all.Turns, t)
					mu.Unlock()
					return err
				}))
			}
		})
	}
	wg.Wait()
	return &all
}

// takeTurn counts up a number that only the lease protects.
func takeTurn(ctx context.Context, rdb *redis.Client, caller string) (turn, error) {
	start := time.Now()
	last, err := rdb.Get(ctx, "turn").Result()
	if err != nil && err != redis.Nil {
		return turn{}, err
	}
	number, let, _ := strings.Cut(last, " ")
	t := turn{Caller: caller}
	t.Number, _ = strconv.Atoi(number)
	t.Number++
	if ns, _ := strconv.ParseInt(let, 10, 64); ns > 0 {
		t.Hand = start.Sub(time.Unix(0, ns))
	}
	time.Sleep(work)
	return t, rdb.Set(ctx, "turn", fmt.Sprint(t.Number, " ", time.Now().UnixNano()), 0).Err()
}

// child is a process in a role.
type child struct {
	*exec.Cmd
	out *json.Decoder
}

// startChild starts a process and waits until it says hello.
func startChild(t *testing.T, role, addr, hello string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role+" "+addr)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, len(hello)+1)
	if _, err := pipe.Read(line); err != nil || string(line) != hello+"\n" {
		t.Fatalf("the child said %q: %v", line, err)
	}
	return &child{cmd, json.NewDecoder(pipe)}
}

// report waits for what the child says at its end.
func (c *child) report(t *testing.T, into any) {
	t.Helper()
	kill := time.AfterFunc(2*patience, func() { _ = c.Process.Kill() })
	defer kill.Stop()
	if err := c.out.Decode(into); err != nil {
		t.Fatalf("the child's report: %v", err)
	}
}

func (c *child) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// longestGap returns over how many turns of others somebody had to wait.
func longestGap(turns []turn) int {
	slices.SortFunc(turns, func(a, b turn) int { return a.Number - b.Number })
	longest, last := 0, make(map[string]int)
	for _, t := range turns {
		if n, ok := last[t.Caller]; ok {
			longest = max(longest, t.Number-n)
		}
		last[t.Caller] = t.Number
	}
	return longest
}
