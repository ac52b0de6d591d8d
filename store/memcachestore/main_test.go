package memcachestore

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: most of them
// wait for a server that counts in seconds.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "32")
	os.Exit(m.Run())
}
