package servertest

import (
	"fmt"
	"net"
	"sync"
)

// Proxy stands between a client and a server and provokes what networks do.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex // protects what follows
	mode  proxyMode
	lose  int // replies still to be lost
	links map[*link]struct{}
}

type proxyMode uint8

const (
	pass proxyMode = iota
	dropReplies
	dropAll
)

// link is one proxied connection.
type link struct {
	client, server net.Conn
	torn           bool // it lost bytes: nothing after them may pass
}

// NewProxy starts a proxy to target for the length of a test.
func NewProxy(tb TB, target string) *Proxy {
	tb.Helper()
	p, err := StartProxy(target)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// StartProxy is NewProxy for programs. Close ends it.
func StartProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("servertest: proxy to %s: %w", target, err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, links: make(map[*link]struct{})}
	p.done.Go(p.accept)
	return p, nil
}

// Pass lets everything through again, on new connections and on those that
// have lost nothing. A connection that lost bytes stays silent until Cut.
func (p *Proxy) Pass() { p.set(pass) }

// DropReplies delivers requests and swallows replies: what was asked is done,
// and nobody is told.
func (p *Proxy) DropReplies() { p.set(dropReplies) }

// DropAll swallows everything in both directions and closes nothing, like a
// peer that vanished: the connections are half-open.
func (p *Proxy) DropAll() { p.set(dropAll) }

func (p *Proxy) set(m proxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
}

// LoseReply delivers the next request, swallows its reply and cuts that
// connection, so that the client knows at once that it knows nothing.
func (p *Proxy) LoseReply() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose++
}

// Cut closes every connection. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Cut()
	p.done.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			p.Cut() // one may have come in after the Cut of Close
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		p.mu.Lock()
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.done.Go(func() { p.copy(l, server, client, p.forwards) })
		p.done.Go(func() { p.copy(l, client, server, p.replies) })
	}
}

// copy moves bytes from src to dst as far as may says, until either is closed.
func (p *Proxy) copy(l *link, dst, src net.Conn, may func(*link) bool) {
	defer p.forget(l)
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if !may(l) {
			continue
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// forwards reports whether a request on l may pass.
func (p *Proxy) forwards(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.torn = l.torn || p.mode == dropAll
	return !l.torn || p.mode == dropReplies
}

// replies reports whether a reply on l may pass.
func (p *Proxy) replies(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose > 0 {
		p.lose--
		l.torn = true
		l.close()
	}
	l.torn = l.torn || p.mode != pass
	return !l.torn
}

func (p *Proxy) forget(l *link) {
	l.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}
