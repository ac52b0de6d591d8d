package redisstore_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/redisstore"
)

const (
	long     = time.Minute
	patience = 20 * time.Second
)

// counter is a hook that notes the names of the commands of a client.
type counter struct {
	mu    sync.Mutex
	names []string
	trips int
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.note(cmd)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.note(cmds...)
		return next(ctx, cmds)
	}
}

func (c *counter) note(cmds ...redis.Cmder) {
	if strings.HasPrefix(cmds[0].Name(), "hello") || cmds[0].Name() == "client" {
		return // go-redis on a new connection
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips++
	for _, cmd := range cmds {
		c.names = append(c.names, cmd.Name())
	}
}

// expect checks the commands since the last call, but for heartbeats.
func (c *counter) expect(t *testing.T, what string, trips int, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	beats := 0
	c.names = slices.DeleteFunc(c.names, func(name string) bool {
		if name == "publish" {
			beats++
		}
		return name == "publish"
	})
	if !slices.Equal(c.names, want) || c.trips-beats != trips {
		t.Errorf("%s took %d round trips %v, want %d %v", what, c.trips-beats, c.names, trips, want)
	}
	c.names, c.trips = nil, 0
}

// counted returns a store whose commands are counted, and that the server
// already knows the scripts of.
func counted(t *testing.T, addr string) (*redisstore.Store, *counter) {
	t.Helper()
	rdb, c := single(t, addr), new(counter)
	s := newStore(t, rdb, nil)
	teach(t, s)
	rdb.AddHook(c)
	return s, c
}

// teach makes the server know every script.
func teach(t testing.TB, s *redisstore.Store) {
	t.Helper()
	ctx := context.Background()
	l := claimed(t, s, "warm")
	_, err := s.Renew(ctx, l, long)
	ok(t, err)
	ok(t, s.Fill(ctx, l, nil, long))
	ok(t, s.Expire(ctx, "warm"))
	ok(t, s.Put(ctx, "warm", store.NewToken(), nil, long))
	ok(t, s.Delete(ctx, "warm"))
	ok(t, s.Yield(ctx, claimed(t, s, "warm"), store.Failure{}))
	l, err = s.Acquire(ctx, request("warm"))
	ok(t, err)
	ok(t, s.Release(ctx, l))
	ok(t, s.Leave(ctx, request("warm")))
	_, err = s.Break(ctx, "warm")
	ok(t, err)
}

func request(key string) store.Request {
	return store.Request{Key: key, Token: store.NewToken(), TTL: long}
}

// claimed returns a lease to fill key, which has no entry.
func claimed(t testing.TB, s *redisstore.Store, key string) store.Lease {
	t.Helper()
	a, err := s.Claim(context.Background(), request(key))
	ok(t, err)
	if a.State != store.Granted {
		t.Fatalf("the claim of %q was answered %v", key, a.State)
	}
	return a.Lease
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// watch watches key until the test ends. What the first subscription told is
// not among the events.
func watch(t testing.TB, s *redisstore.Store, key string) <-chan store.Event {
	t.Helper()
	events, stop, err := s.Watch(context.Background(), key)
	ok(t, err)
	t.Cleanup(stop)
	select {
	case <-events:
	default:
	}
	return events
}

// nextEvent returns the next event that is right.
func nextEvent(t testing.TB, events <-chan store.Event, right func(store.Event) bool) store.Event {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case e := <-events:
			if right(e) {
				return e
			}
		case <-timeout:
			t.Fatal("waited in vain for an event")
		}
	}
}

func anyEvent(store.Event) bool       { return true }
func namesGrant(e store.Event) bool   { return e.Grant != 0 }
func carriesLease(e store.Event) bool { return !e.Lease.Token.IsZero() }

// eventually repeats cond until it is true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// TestRoundTrips pins the budget of the design, command by command.
func TestRoundTrips(t *testing.T) {
	ctx := context.Background()
	server := servertest.Redis(t)
	leader, led := counted(t, server.Addr)
	waiter, waited := counted(t, server.Addr)
	events := watch(t, waiter, "page")

	_, err := leader.Get(ctx, "page")
	wantErr(t, err, store.ErrMiss)
	_, err = waiter.Get(ctx, "page")
	wantErr(t, err, store.ErrMiss)
	l := claimed(t, leader, "page")
	a, err := waiter.Claim(ctx, request("page"))
	ok(t, err)
	if a.State != store.Held {
		t.Fatalf("the second claim was answered %v", a.State)
	}
	ok(t, leader.Fill(ctx, l, []byte("value"), long))
	e := nextEvent(t, events, namesGrant)
	if string(e.Entry.Value) != "value" || e.Entry.Version != l.Token {
		t.Errorf("the waiter was told %+v", e)
	}
	led.expect(t, "a cold fill", 3, "get", "evalsha", "evalsha")
	waited.expect(t, "a waiter", 2, "get", "evalsha")

	_, err = waiter.Get(ctx, "page")
	ok(t, err)
	waited.expect(t, "a hit", 1, "get")

	lease, err := leader.Acquire(ctx, request("job"))
	ok(t, err)
	led.expect(t, "acquire", 1, "evalsha")
	ok(t, leader.Release(ctx, lease))
	led.expect(t, "release", 1, "evalsha")
	ok(t, leader.Delete(ctx, "page"))
	led.expect(t, "delete", 1, "evalsha")
}

// TestRoundTripsOfBatches: many keys are one round trip, however many.
func TestRoundTripsOfBatches(t *testing.T) {
	ctx := context.Background()
	s, count := counted(t, servertest.Redis(t).Addr)
	keys := []string{"a", "b", "c"}
	var leases []store.Lease
	for _, key := range keys {
		leases = append(leases, claimed(t, s, key))
	}
	count.expect(t, "three claims", 3, "evalsha", "evalsha", "evalsha")
	_, errs := s.RenewAll(ctx, leases, long)
	ok(t, errors.Join(errs...))
	count.expect(t, "RenewAll of three", 1, "evalsha", "evalsha", "evalsha")
	ok(t, errors.Join(s.DeleteAll(ctx, keys)...))
	count.expect(t, "DeleteAll of three", 1, "evalsha", "evalsha", "evalsha")
}

// TestRoundTripsOfATurn: under contention a turn costs one Enqueue and one
// Release: the lease comes by itself.
func TestRoundTripsOfATurn(t *testing.T) {
	server := servertest.Redis(t)
	const contenders, turns = 3, 20
	var counters []*counter
	var done sync.WaitGroup
	for range contenders {
		s, count := counted(t, server.Addr)
		counters = append(counters, count)
		done.Go(func() {
			if err := takeTurns(s, "job", turns); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for _, count := range counters {
		count.expect(t, "20 turns", 2*turns, slices.Repeat([]string{"evalsha"}, 2*turns)...)
	}
}

// takeTurns gets the lease on key n times, in its turn, and releases it at once.
func takeTurns(s *redisstore.Store, key string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	events, stop, err := s.Watch(ctx, key)
	if err != nil {
		return err
	}
	defer stop()
	for range n {
		req := request(key)
		l, err := s.Enqueue(ctx, req)
		for errors.Is(err, store.ErrHeld) && l.Token != req.Token {
			select {
			case e := <-events:
				l = e.Lease
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil && !errors.Is(err, store.ErrHeld) {
			return err
		}
		if err := s.Release(ctx, l); err != nil {
			return err
		}
	}
	return nil
}
