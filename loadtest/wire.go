package main

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The bench speaks to a worker by net/rpc over the worker's standard input and
// output: one method per verb of [worker]. Loads are told live, by gob on a
// pipe of their own, because a worker may die in the middle of one.

// Setup says what a worker puts between its callers and their loaders.
type Setup struct {
	Worker    int    // number of the worker in its fleet
	Contender string // name of a contender
	Redis     string // host:port
	Locks     bool   // it is a Locker
	Tuning    Tuning
}

// Tuning are the settings of a contender. Contenders without a setting do
// without it; zero values are their defaults.
type Tuning struct {
	TTL         time.Duration // 1 min by default
	Stale       time.Duration
	LoadTimeout time.Duration
	NearTTL     time.Duration // a near cache, if positive
}

// Job is what the callers of a worker do.
type Job struct {
	ID      int
	Callers int
	Keys    []string

	// A caller ends after Calls calls; or, if For is set, that long after the
	// start; or, with UntilOK, after its first success.
	Calls   int
	For     time.Duration
	UntilOK bool

	Shuffle bool          // each caller takes the keys in an order of its own
	Pace    time.Duration // mean time from the end of a call to the next
	Timeout time.Duration // of each call
	Bound   time.Duration // of the whole job: then its callers are cancelled
	Load    LoadSpec
}

// LoadSpec says how the loader of a job behaves.
type LoadSpec struct {
	Takes time.Duration
	Size  int // bytes of the value, at least a header

	// Ending is how loads end, other than by a value: the first Only loads
	// of the job in this worker if that is set, those that begin within
	// Until of the start if that is set, else all.
	Ending Ending
	Only   int64
	Until  time.Duration
}

// Ending is how a load ends.
type Ending uint8

// The endings of a load.
const (
	Value Ending = iota
	Fail
	Panic
	Hang // never, whatever its context says
)

// Start begins a prepared job at the instant At.
type Start struct {
	Job int
	At  instant
}

// Call is one call of a caller.
type Call struct {
	Worker     int
	Key        string
	Start, End instant
	Outcome    string // what a contender says of it, if it does
	Version    int64  // of the source, in the value
	Load       uint64 // that made the value
	Err        string
	Panicked   bool
}

func (c *Call) ok() bool            { return c.Err == "" && !c.Panicked }
func (c *Call) took() time.Duration { return c.End.sub(c.Start) }

// Done is what became of a job in one worker.
type Done struct {
	Calls []Call
	Stuck int   // callers who did not return long after their time was up
	Told  int64 // how many loads were told until now, begins and ends
}

// Load is one run of a loader. End is zero while it runs.
type Load struct {
	ID         uint64
	Worker     int
	Key        string
	Version    int64
	Alone      bool // herdgate's store did not answer: law 9 rules
	Start, End instant
	Err        string
}

// None is the argument or the answer of an rpc that has none.
type None bool

// instant is a reading of the machine's monotonic clock, in nanoseconds. All
// processes of a machine share it.
type instant int64

func (t instant) sub(u instant) time.Duration { return time.Duration(t - u) }
func (t instant) add(d time.Duration) instant { return t + instant(d) }
func (t instant) wait() <-chan time.Time      { return time.After(t.sub(now())) }

var clockBase, clockStart = readClock(), time.Now()

// now reads the clock. It costs as little as time.Now.
func now() instant { return clockBase.add(time.Since(clockStart)) }

func readClock() instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return instant(ts.Nano())
}

// headerSize is how long a value is at least.
const headerSize = 16

// encodeValue returns a value of at least size bytes that tells its source
// version and its load.
func encodeValue(version int64, load uint64, size int) []byte {
	b := make([]byte, max(size, headerSize))
	binary.BigEndian.PutUint64(b, uint64(version))
	binary.BigEndian.PutUint64(b[8:], load)
	return b
}

var errDamaged = errors.New("loadtest: the value is not what a loader made")

func decodeValue(b []byte) (version int64, load uint64, err error) {
	if len(b) < headerSize {
		return 0, 0, errDamaged
	}
	return int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:]), nil
}
