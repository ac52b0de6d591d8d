package memcachestore

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// wire is what a test sees and does between one store and its servers: it
// counts commands, and can act on single ones.
type wire struct {
	mu     sync.Mutex
	counts map[string]int // commands sent, by verb
	rules  []rule
}

// rule is what happens to the next command that begins with prefix.
type rule struct {
	prefix string
	act    func(*tap, []byte) (int, error) // instead of sending
}

// dial goes into memcache.Client.DialContext.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &tap{Conn: conn, wire: w}, nil
}

// before runs f when the next command with the prefix is about to be sent.
func (w *wire) before(prefix string, f func()) {
	w.rule(prefix, func(t *tap, b []byte) (int, error) {
		f()
		return t.Conn.Write(b)
	})
}

// loseReply lets the next command with the prefix take effect, and its sender
// run into a timeout.
func (w *wire) loseReply(prefix string) {
	w.rule(prefix, func(t *tap, b []byte) (int, error) {
		n, err := t.Conn.Write(b)
		if err == nil {
			_, err = t.Conn.Read(make([]byte, 1<<16)) // it has taken effect
		}
		t.mute = true
		return n, err
	})
}

// hold keeps the next command with the prefix back, and lets its sender run
// into a timeout. deliver sends it at last and returns the reply.
func (w *wire) hold(tb testing.TB, prefix string) (deliver func() string) {
	var address string
	var held []byte
	w.rule(prefix, func(t *tap, b []byte) (int, error) {
		address, held = t.Conn.RemoteAddr().String(), bytes.Clone(b)
		t.mute = true
		return len(b), nil
	})
	return func() string {
		tb.Helper()
		if held == nil {
			tb.Fatalf("no command %q was held back", prefix)
		}
		return raw(tb, address, string(held))
	}
}

func (w *wire) rule(prefix string, act func(*tap, []byte) (int, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, rule{prefix, act})
}

// sent counts a command and takes the rule for it, if there is one.
func (w *wire) sent(command string) func(*tap, []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	verb, _, _ := strings.Cut(command, " ")
	if w.counts == nil {
		w.counts = make(map[string]int)
	}
	w.counts[verb]++
	for i, r := range w.rules {
		if strings.HasPrefix(command, r.prefix) {
			w.rules = append(w.rules[:i:i], w.rules[i+1:]...)
			return r.act
		}
	}
	return nil
}

// took returns the commands since it was last asked.
func (w *wire) took() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.counts
	w.counts = nil
	return taken
}

// costs checks the commands since the last check.
func (w *wire) costs(t *testing.T, what string, want map[string]int) {
	t.Helper()
	if got := w.took(); !maps.Equal(got, want) {
		t.Errorf("%s took the commands %v, want %v", what, got, want)
	}
}

// tap is one connection of a wire.
type tap struct {
	net.Conn
	wire *wire
	rest int  // bytes of the current command that are still to come
	mute bool // no reply arrives any more
}

func (t *tap) Write(b []byte) (int, error) {
	if t.rest > 0 {
		t.rest -= len(b)
		return t.Conn.Write(b)
	}
	command, _, _ := strings.Cut(string(b), "\r\n")
	if f := strings.Fields(command); len(f) > 4 { // add, cas: a data block follows
		size, _ := strconv.Atoi(f[4])
		t.rest = len(command) + 2 + size + 2 - len(b)
	}
	if act := t.wire.sent(command); act != nil {
		return act(t, b)
	}
	return t.Conn.Write(b)
}

func (t *tap) Read(b []byte) (int, error) {
	if t.mute {
		return 0, os.ErrDeadlineExceeded
	}
	return t.Conn.Read(b)
}

// raw sends bytes to a server and returns the first line of its reply.
func raw(tb testing.TB, address, command string) string {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte(command)); err != nil {
		tb.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// newStore returns a store on the servers, and the wire between them.
func newStore(tb testing.TB, addresses ...string) (*Store, *wire) {
	tb.Helper()
	w := new(wire)
	servers := new(memcache.ServerList)
	if err := servers.SetServers(addresses...); err != nil {
		tb.Fatal(err)
	}
	client := memcache.NewFromSelector(servers)
	client.DialContext = w.dial
	client.Timeout = 5 * time.Second // a loaded machine is no failure
	client.MaxIdleConns = 16
	tb.Cleanup(func() { client.Close() })
	o := new(Options)
	if len(addresses) > 1 {
		o.Selector = servers
	}
	s, err := New(client, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s, w
}
