package redisstore

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// states are conditions of a server in which it refuses commands, by the
// beginning of its error, and what to do about them.
var states = []struct{ prefix, means string }{
	{"NOPERM", "the Redis user may not do this; herdgate needs GET, EVAL, EVALSHA, what the scripts call, and SUBSCRIBE and PUBLISH on the channels of its namespace"},
	{"READONLY", "the server is a read-only replica; connect to the master (FailoverOptions.ReplicaOnly must be off)"},
	{"OOM", "the server is out of memory (maxmemory)"},
	{"LOADING", "the server is still loading its data"},
	{"MISCONF", "the server cannot persist and refuses writes"},
	{"WRONGTYPE", "somebody else has written into a key of herdgate's namespace"},
	{"NOAUTH", "the server wants a password"},
	{"CLUSTERDOWN", "the cluster does not serve all its slots"},
	{"BUSY", "the server is busy with somebody's endless script"},
}

// explain names the operation and, if known, the state of the server. The
// result wraps err.
func explain(op string, err error) error {
	for _, s := range states {
		// A server before Redis 7 puts words of its own before an error in a script.
		if redis.HasErrorPrefix(err, s.prefix) || strings.Contains(err.Error(), ": "+s.prefix+" ") {
			return fmt.Errorf("redisstore: %s: %s: %w", op, s.means, err)
		}
	}
	return fmt.Errorf("redisstore: %s: %w", op, err)
}
