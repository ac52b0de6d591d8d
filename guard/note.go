package guard

import (
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/herdgate/herdgate/store"
)

// maxStack is how many bytes of a stack a note keeps: every refusal carries it.
const maxStack = 4 << 10

var hostname = sync.OnceValue(func() string {
	name, _ := os.Hostname() // a note without a host is still one
	return name
})

// note says who asks for a lease, for those who will be refused.
func (g *Guard) note(o *AcquireOptions) store.Note {
	if o == nil {
		o = &AcquireOptions{}
	}
	n := store.Note{
		Owner: g.o.Owner, Host: hostname(), PID: os.Getpid(),
		Reason: o.Reason, Since: time.Now(), Expect: o.Expect, AlertAfter: o.AlertAfter,
	}
	if g.o.Stack {
		stack := make([]byte, maxStack)
		n.Stack = string(stack[:runtime.Stack(stack, false)])
	}
	return n
}
