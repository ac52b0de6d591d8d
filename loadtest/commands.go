package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// commandCounter counts what clients send to a Redis server, by MONITOR, and
// what the server says that it processed, scripts' calls included, by INFO.
type commandCounter struct {
	conn net.Conn // in MONITOR
	rdb  *redis.Client

	mu    sync.Mutex // protects what follows
	sent  map[string]int
	marks map[string]chan struct{}
	err   error
}

// countCommands begins to count. Close the counter: MONITOR slows a server
// down.
func countCommands(ctx context.Context, addr string) (*commandCounter, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(awaitTimeout))
	in := bufio.NewReader(conn)
	if _, err = fmt.Fprint(conn, "MONITOR\r\n"); err == nil {
		_, err = in.ReadString('\n') // +OK
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("loadtest: MONITOR: %w", err)
	}
	_ = conn.SetDeadline(time.Time{})
	c := &commandCounter{
		conn: conn, rdb: redis.NewClient(&redis.Options{Addr: addr}),
		sent: map[string]int{}, marks: map[string]chan struct{}{},
	}
	go c.read(in)
	return c, nil
}

func (c *commandCounter) read(in *bufio.Reader) {
	for {
		line, err := in.ReadString('\n')
		c.mu.Lock()
		if err != nil {
			c.err = err
			for _, mark := range c.marks {
				close(mark)
			}
			clear(c.marks)
			c.mu.Unlock()
			return
		}
		c.note(line)
		c.mu.Unlock()
	}
}

// note counts one line of MONITOR:
//
//	+1339518083.107412 [0 127.0.0.1:60866] "get" "key"
//	+1339518083.107413 [0 lua] "get" "key"
func (c *commandCounter) note(line string) {
	_, rest, ok := strings.Cut(line, "[")
	if !ok {
		return
	}
	source, rest, ok := strings.Cut(rest, "] ")
	if !ok {
		return
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return
	}
	name, err := strconv.Unquote(words[0])
	if err != nil {
		return
	}
	name = strings.ToLower(name)
	if name == "client" && len(words) > 1 {
		name += " " + strings.ToLower(strings.Trim(words[1], `"`))
	}
	if name == "echo" && len(words) == 2 {
		if mark, ok := c.marks[words[1]]; ok {
			close(mark)
			delete(c.marks, words[1])
		}
		return
	}
	if strings.HasSuffix(source, " lua") || notOfCalls[name] {
		return
	}
	c.sent[name]++
}

// notOfCalls are the commands of the counter itself, and those that set up a
// connection: they belong to no call.
var notOfCalls = map[string]bool{
	"info": true, "hello": true, "auth": true, "select": true,
	"client setinfo": true, "client setname": true, "client id": true, "client tracking": true,
	"client maint_notifications": true,
}

// tally is what was counted up to some moment.
type tally struct {
	byName    map[string]int // sent by clients
	processed int            // by the server, scripts' calls and the counter's own included
}

// since returns what came after an earlier tally. The counter's own commands,
// an INFO and an ECHO, are taken off.
func (t tally) since(earlier tally) tally {
	d := tally{map[string]int{}, t.processed - earlier.processed - 2}
	for name, n := range t.byName {
		if n -= earlier.byName[name]; n > 0 {
			d.byName[name] = n
		}
	}
	return d
}

func (t tally) sent() (n int) {
	for _, m := range t.byName {
		n += m
	}
	return n
}

// Count returns what was counted until now.
func (c *commandCounter) Count(ctx context.Context) (t tally, err error) {
	mark := make(chan struct{})
	text := "mark-" + strconv.FormatInt(int64(now()), 36)
	c.mu.Lock()
	c.marks[strconv.Quote(text)] = mark
	c.mu.Unlock()
	if t.processed, err = c.processed(ctx); err != nil {
		return t, err
	}
	if err := c.rdb.Echo(ctx, text).Err(); err != nil {
		return t, err
	}
	select {
	case <-mark:
	case <-ctx.Done():
		return t, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.byName = maps.Clone(c.sent)
	return t, c.err
}

func (c *commandCounter) processed(ctx context.Context) (int, error) {
	info, err := c.rdb.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	line, _, _ := strings.Cut(rest, "\r\n")
	return strconv.Atoi(line)
}

// Close ends the counting.
func (c *commandCounter) Close() {
	_ = c.conn.Close()
	_ = c.rdb.Close()
}
