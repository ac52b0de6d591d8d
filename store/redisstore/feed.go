package redisstore

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// source is what a subscription is made with: a client, or a shard of a ring.
type source interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
	Publish(ctx context.Context, channel string, message any) *redis.IntCmd
}

// pulse is the heart rate of a subscription.
type pulse struct {
	every    time.Duration // between heartbeats
	patience time.Duration // after which a heartbeat is missed
	pause    time.Duration // between attempts to subscribe again, at most
}

// defaultPulse costs one PUBLISH a second while somebody waits, and notices a
// half-open connection within four seconds. Polls stand behind it.
var defaultPulse = pulse{every: time.Second, patience: 2 * time.Second, pause: time.Second}

// feed is the permanent subscription of a Store to its inbox on one server.
//
// A connection can die without anybody being told (the peer vanished, a
// firewall forgot it), and go-redis does not notice: its ping wants no answer.
// So the feed publishes to its own inbox and expects to read it. When it does
// not, it subscribes anew on another connection, and after that every watch is
// told to look again, since nobody knows what was missed.
type feed struct {
	source    source
	inbox     string
	pulse     pulse
	gone      string        // the channel of announcements
	watched   func() bool   // reports whether anybody watches
	lookAgain func()        // called when something may have been missed
	receive   func(message) // called with every message but heartbeats
	announced func(key string)
	done      sync.WaitGroup

	mu      sync.Mutex // protects what follows
	conn    *redis.PubSub
	up      bool
	wide    bool          // subscribed to the announcements too
	err     error         // why it is not up, nil before the first attempt ended
	changed chan struct{} // closed when up or err change
	sent    time.Time     // when the outstanding heartbeat was sent, zero if none is
	count   int           // number of the last heartbeat
}

func (f *feed) start(ctx context.Context) {
	f.done.Go(func() { f.run(ctx) })
	f.done.Go(func() { f.beat(ctx) })
}

func (f *feed) wait() { f.done.Wait() }

// live returns nil if the subscription is up, and waits for its first attempt.
func (f *feed) live(ctx context.Context) error {
	for {
		f.mu.Lock()
		up, err, changed := f.up, f.err, f.changed
		f.mu.Unlock()
		if up || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// set notes whether the subscription is up, or why not.
func (f *feed) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up, f.err = err == nil, err
	f.sent = time.Time{}
	close(f.changed)
	f.changed = make(chan struct{})
}

// run subscribes and reads until ctx ends. Failed attempts are spaced.
func (f *feed) run(ctx context.Context) {
	pause := f.pulse.pause / 16
	for ctx.Err() == nil {
		if f.connection(ctx) {
			pause = f.pulse.pause / 16
		}
		if cluster, ok := f.source.(*redis.ClusterClient); ok {
			cluster.ReloadState(ctx) // the node may have a successor
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, f.pulse.pause)
	}
	f.set(ErrClosed)
}

// connection subscribes on a new connection and reads until it breaks. It
// reports whether the subscription was ever up.
func (f *feed) connection(ctx context.Context) (wasUp bool) {
	conn := f.source.Subscribe(ctx, f.inbox)
	defer conn.Close()
	if err := f.use(ctx, conn); err != nil {
		f.set(err)
		return false
	}
	for ctx.Err() == nil {
		msg, err := conn.Receive(ctx)
		if err != nil {
			f.set(err)
			return wasUp
		}
		switch msg := msg.(type) {
		case *redis.Subscription:
			f.lookAgain() // first, so that a Watch that waits for its subscription returns no later
			f.set(nil)
			wasUp = true
		case *redis.Message:
			if msg.Channel == f.gone {
				f.announced(msg.Payload)
				continue
			}
			f.message(msg.Payload)
		}
	}
	return wasUp
}

// use makes conn the connection of the feed, and subscribes it to the
// announcements too if they are wanted.
func (f *feed) use(ctx context.Context, conn *redis.PubSub) error {
	f.mu.Lock()
	f.conn = conn
	wide := f.wide
	f.mu.Unlock()
	if !wide {
		return nil
	}
	return conn.Subscribe(ctx, f.gone)
}

// widen subscribes to the announcements too, from now on. If the connection is
// replaced meanwhile, use sees to it: one of the two comes second.
func (f *feed) widen(ctx context.Context) error {
	f.mu.Lock()
	conn, wide := f.conn, f.wide
	f.wide = true
	f.mu.Unlock()
	if wide {
		return nil
	}
	return conn.Subscribe(ctx, f.gone)
}

// message handles what came in. Anything else than a heartbeat concerns a key.
func (f *feed) message(payload string) {
	m, ok := decodeMessage(payload)
	switch {
	case !ok:
	case m.kind == beat:
		f.heard(m.payload)
	default:
		f.receive(m)
	}
}

// beat publishes heartbeats while somebody watches, and breaks the connection
// when one does not come back. When ctx ends it breaks it too: a reader that
// waits for messages does not look at ctx.
func (f *feed) beat(ctx context.Context) {
	ticker := time.NewTicker(f.pulse.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			f.hangUp()
			return
		case <-ticker.C:
		}
		switch number, missed := f.next(time.Now()); {
		case missed:
			f.hangUp()
		case number > 0:
			f.done.Go(func() { f.publish(ctx, number) })
		}
	}
}

// next says what to do at a tick: send the heartbeat with that number, or
// nothing, or hang up because the last one was missed.
func (f *feed) next(now time.Time) (number int, missed bool) {
	watched := f.watched()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.up:
		return 0, false
	case !f.sent.IsZero():
		return 0, now.Sub(f.sent) > f.pulse.patience
	case !watched:
		return 0, false
	}
	f.sent, f.count = now, f.count+1
	return f.count, false
}

// publish sends a heartbeat. It has a goroutine of its own, since go-redis can
// take long to give up; one that could not be sent says nothing about the
// subscription.
func (f *feed) publish(ctx context.Context, number int) {
	ctx, cancel := context.WithTimeout(ctx, f.pulse.patience)
	defer cancel()
	if f.source.Publish(ctx, f.inbox, string(beat)+strconv.Itoa(number)).Err() != nil {
		f.heard(strconv.Itoa(number))
	}
}

// heard notes that the heartbeat of that number came back.
func (f *feed) heard(number string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number == strconv.Itoa(f.count) {
		f.sent = time.Time{}
	}
}

// errSilent is why a connection that missed a heartbeat was closed.
var errSilent = errors.New("the subscription is silent")

// hangUp closes the connection. The reader notices and makes a new one.
func (f *feed) hangUp() {
	f.set(errSilent)
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}
