package redisstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua
var lua embed.FS

// The scripts. Each documents its arguments in its first line.
var (
	claimScript   = cacheScript("claim")
	fillScript    = cacheScript("fill")
	yieldScript   = cacheScript("yield")
	deleteScript  = cacheScript("delete")
	expireScript  = cacheScript("expire")
	putScript     = cacheScript("put")
	renewScript   = cacheScript("renew")
	acquireScript = leaseScript("acquire")
	releaseScript = leaseScript("release")
	leaveScript   = leaseScript("leave")
	breakScript   = leaseScript("break")
)

// script is a Lua script with the code that it shares with others before it.
type script struct {
	name   string
	source string
	script *redis.Script
}

func cacheScript(name string) *script { return newScript(name, "common") }
func leaseScript(name string) *script { return newScript(name, "common", "queue") }

func newScript(name string, before ...string) *script {
	var source []byte
	for _, file := range append(before, name) {
		b, err := lua.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // not embedded
		}
		source = append(source, b...)
	}
	return &script{name, string(source), redis.NewScript(string(source))}
}

// call is one call of a script.
type call struct {
	keys []string
	args []any
}

// reply is what a script returned.
type reply struct {
	sent   time.Time // before the request was sent
	values []any     // values[0] is the server's time in µs
}

// run runs sc, by its hash if the server knows it: one round trip.
func (s *Store) run(ctx context.Context, sc *script, c call) (reply, error) {
	sent := time.Now()
	return s.read(sc, sent, sc.script.Run(ctx, s.rdb, c.keys, c.args...))
}

// runAll runs sc for each of calls in one round trip per server. Both results
// have the length of calls. That a server does not know the script is told only
// when all is over: then those calls are sent again, with the source.
func (s *Store) runAll(ctx context.Context, sc *script, calls []call) ([]reply, []error) {
	byHash := func(p redis.Pipeliner, c call) *redis.Cmd {
		return p.EvalSha(ctx, sc.script.Hash(), c.keys, c.args...)
	}
	bySource := func(p redis.Pipeliner, c call) *redis.Cmd {
		return p.Eval(ctx, sc.source, c.keys, c.args...)
	}
	replies, errs, done := make([]reply, len(calls)), make([]error, len(calls)), make([]bool, len(calls))
	sent := time.Now()
	for _, eval := range []func(redis.Pipeliner, call) *redis.Cmd{byHash, bySource} {
		p, cmds := s.rdb.Pipeline(), make(map[int]*redis.Cmd)
		for i, c := range calls {
			if !done[i] {
				cmds[i] = eval(p, c)
			}
		}
		_, _ = p.Exec(ctx) // each command has its own error; without any, nothing is sent
		for i, cmd := range cmds {
			replies[i], errs[i] = s.read(sc, sent, cmd)
			done[i] = !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT")
		}
	}
	return replies, errs
}

// read takes the reply apart and sets the clock by it.
func (s *Store) read(sc *script, sent time.Time, cmd *redis.Cmd) (reply, error) {
	values, err := cmd.Slice()
	if err != nil {
		return reply{}, explain(sc.name, err)
	}
	r := reply{sent, values}
	if r.number(0) == 0 {
		return reply{}, explain(sc.name, fmt.Errorf("%w: %v", errReply, values))
	}
	s.clock.observe(sent, time.Now(), r.time())
	return r, nil
}

// errReply is what a proxy that is not Redis deserves.
var errReply = errors.New("the server's reply makes no sense")

// number returns the i-th value as a number, 0 if it is none.
func (r reply) number(i int) int64 {
	if i >= len(r.values) {
		return 0
	}
	n, _ := r.values[i].(int64)
	return n
}

// text returns the i-th value as a string, "" if it is none.
func (r reply) text(i int) string {
	if i >= len(r.values) {
		return ""
	}
	s, _ := r.values[i].(string)
	return s
}

// time returns the server's time when the script ran.
func (r reply) time() time.Time { return time.UnixMicro(r.number(0)) }

// longest is the longest time to live. Added to the server's time in µs it is
// still below 2^53, up to which Lua counts exactly.
const longest = 200 * 365 * 24 * time.Hour

// span returns d as a time to live that the scripts can count with.
func span(d time.Duration) time.Duration { return min(d, longest) }

// millis returns the span in ms, rounded up: none is cut short.
func millis(d time.Duration) int64 {
	d = span(d)
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}
