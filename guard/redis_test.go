package guard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

// openRedis returns a guard with a client of its own, as in another process.
func openRedis(t *testing.T, addr string, o *Options) (*Guard, *countingHook) {
	t.Helper()
	s, commands := redisLeaser(t, addr)
	return open(t, s, o), commands
}

func redisLeaser(t testing.TB, addr string) (store.Leaser, *countingHook) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	commands := &countingHook{}
	rdb.AddHook(commands)
	s, err := redisstore.New(rdb, &redisstore.Options{Fences: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, commands
}

// TestUncontendedPairIsTwoCommands: one to acquire, one to release.
func TestUncontendedPairIsTwoCommands(t *testing.T) {
	server := servertest.Redis(t)
	g, commands := openRedis(t, server.Addr, nil)
	released(t, acquired(t, g, "warm", nil)) // loads the scripts
	before := commands.n.Load()
	const pairs = 20
	long := 0
	for range pairs {
		start := time.Now()
		released(t, acquired(t, g, "x", nil))
		if time.Since(start) > watchAfter {
			long++ // on a stalled machine it is renewed once
		}
	}
	if n := commands.n.Load() - before; n < 2*pairs || n > int64(2*pairs+3*long) {
		t.Errorf("%d commands for %d pairs, %d of them long", n, pairs, long)
	}
}

// TestLaw1RedisOneHolder: callers of several guards count up an unprotected
// number.
func TestLaw1RedisOneHolder(t *testing.T) {
	server := servertest.Redis(t)
	var guards []*Guard
	for range 3 {
		g, _ := openRedis(t, server.Addr, &Options{Fence: true})
		guards = append(guards, g)
	}
	const callers, rounds = 16, 40
	count, fence := 0, uint64(0)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range rounds {
				err := guards[i%len(guards)].Do(t.Context(), "x", func(ctx context.Context) error {
					count++
					l, _ := FromContext(ctx)
					if l.Fence() <= fence {
						t.Errorf("fence %d after %d", l.Fence(), fence)
					}
					fence = l.Fence()
					return nil
				})
				if err != nil {
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if count != callers*rounds {
		t.Errorf("counted %d of %d", count, callers*rounds)
	}
}

// TestFairAmongProcesses: four processes with four callers each, which hold
// the lease for a millisecond. Nobody waits for five times as many turns as
// there are callers, and a turn costs few commands.
func TestFairAmongProcesses(t *testing.T) {
	server := servertest.Redis(t)
	const processes = 4
	var children []*child
	for range processes {
		children = append(children, startChild(t, "contend", server.Addr, "ready"))
	}
	var turns []turn
	var commands int64
	for _, c := range children {
		var r contended
		c.report(t, &r)
		turns, commands = append(turns, r.Turns...), commands+r.Commands
	}
	const callers = processes * callersPerProcess
	if len(turns) != callers*turnsPerCaller {
		t.Errorf("%d turns of %d", len(turns), callers*turnsPerCaller)
	}
	gap := longestGap(turns)
	if gap > 5*callers {
		t.Errorf("somebody had to wait for %d turns of %d callers", gap, callers)
	}
	for i, got := range turns {
		if got.Number != i+1 {
			t.Fatalf("turn %d counted %d: there were two holders", i+1, got.Number)
		}
	}
	perTurn := float64(commands) / float64(len(turns))
	if perTurn > 2.5 {
		t.Errorf("%.2f commands per turn", perTurn)
	}
	slices.SortFunc(turns, func(a, b turn) int { return int(a.Hand - b.Hand) })
	t.Logf("longest wait %d turns; %.2f commands per turn; hand-over p50 %v, p99 %v",
		gap, perTurn, turns[len(turns)/2].Hand, turns[len(turns)*99/100].Hand)
}

// TestLaw5DeadProcessIsFollowed: the holder is killed; the next one has the
// lease when its time is over.
func TestLaw5DeadProcessIsFollowed(t *testing.T) {
	server := servertest.Redis(t)
	holder := startChild(t, "hold", server.Addr, "held")
	g, _ := openRedis(t, server.Addr, nil)
	_, err := g.TryAcquire(t.Context(), "x", nil)
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.Note.PID != holder.Process.Pid {
		t.Errorf("the holder is shown as %v", err)
	}
	holder.signal(t, syscall.SIGKILL)
	start := time.Now()
	l := acquired(t, g, "x", nil)
	if took := time.Since(start); took > childTTL+patience/4 {
		t.Errorf("the dead process was followed after %v", took)
	}
	released(t, l)
}

// TestLaw8PausedProcessKnowsThatItLost: the holder is stopped past the end of
// its lease. Another takes over, with a greater fence; the first knows it as
// soon as it goes on.
func TestLaw8PausedProcessKnowsThatItLost(t *testing.T) {
	server := servertest.Redis(t)
	holder := startChild(t, "hold", server.Addr, "held")
	g, _ := openRedis(t, server.Addr, &Options{Fence: true})
	holder.signal(t, syscall.SIGSTOP)
	l := acquired(t, g, "x", nil)
	holder.signal(t, syscall.SIGCONT)
	var r ended
	holder.report(t, &r)
	if !strings.Contains(r.Cause, ErrLost.Error()) || r.Fence == 0 || r.Fence >= l.Fence() {
		t.Errorf("the paused holder had the fence %d and says %q; the next has %d", r.Fence, r.Cause, l.Fence())
	}
	if l.Err() != nil {
		t.Errorf("the new lease was lost: %v", l.Err())
	}
	released(t, l)
}

// TestRedisBreakWakesTheHolder: in another process, so to say.
func TestRedisBreakWakesTheHolder(t *testing.T) {
	server := servertest.Redis(t)
	g, commands := openRedis(t, server.Addr, &Options{TTL: time.Hour})
	operator, _ := openRedis(t, server.Addr, nil)
	l := acquired(t, g, "x", nil)
	before := commands.n.Load()
	eventually(t, "the lease is watched and renewed", func() bool { return commands.n.Load() > before })
	if _, err := operator.Break(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	ends(t, l, ErrLost)
	wantErr(t, l.Release(t.Context()), ErrLost)
}

// TestLaw8RedisHolderStopsWhenTheServerHangs: half-open, so that nothing ever
// fails by itself; then it goes on, and the lease can be had again.
func TestLaw8RedisHolderStopsWhenTheServerHangs(t *testing.T) {
	server := servertest.Redis(t)
	g, _ := openRedis(t, server.Addr, &Options{TTL: 2 * time.Second})
	l := acquired(t, g, "x", nil)
	server.Pause()
	t.Cleanup(server.Continue)
	ends(t, l, ErrLost)
	start := time.Now()
	_, err := g.TryAcquire(t.Context(), "y", nil)
	wantErr(t, err, ErrUnavailable)
	if took := time.Since(start); took > patience/4 {
		t.Errorf("the caller waited %v", took)
	}
	server.Continue()
	wantErr(t, l.Release(t.Context()), ErrLost)
	released(t, acquired(t, g, "x", nil))
}

// TestRedisThatRefusesScripts: what the server says reaches the caller.
func TestRedisThatRefusesScripts(t *testing.T) {
	server := servertest.Redis(t)
	g, _ := openRedis(t, server.Addr, &Options{TTL: time.Second})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "-@scripting").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := g.Acquire(t.Context(), "x", nil)
	wantErr(t, err, ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("%v does not say why", err)
	}
}

// TestRedisRestartedEmpty: the server forgot the lease; its holder knows at
// the next renewal, and waiters are not stuck in a queue that is gone.
func TestRedisRestartedEmpty(t *testing.T) {
	server := servertest.Redis(t)
	g, _ := openRedis(t, server.Addr, &Options{TTL: 2 * time.Second})
	other, _ := openRedis(t, server.Addr, &Options{TTL: 2 * time.Second, StoreTimeout: 1900 * time.Millisecond})
	l := acquired(t, g, "x", nil)
	next := make(chan *Lease)
	go func() {
		for {
			l, err := other.Acquire(t.Context(), "x", nil)
			if err == nil {
				next <- l
				return
			}
			if !errors.Is(err, ErrUnavailable) { // it failed for longer than StoreTimeout
				t.Errorf("Acquire: %v", err)
				close(next)
				return
			}
		}
	}()
	server.Kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case second := <-next:
		released(t, second)
	case <-time.After(patience):
		t.Fatal("the waiter is stuck")
	}
	ends(t, l, ErrLost)
	wantErr(t, l.Release(t.Context()), ErrLost)
}
