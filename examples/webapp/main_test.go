package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asApp makes the test program be the app, with these arguments.
const asApp = "WEBAPP_TEST_ARGS"

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(asApp); ok {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		main()
		return
	}
	os.Exit(m.Run())
}

// TestInterrupt: Ctrl-C in the middle of a stampede ends the app soon, without
// an error, and its file is gone.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	app := exec.CommandContext(ctx, os.Args[0])
	app.Env = append(os.Environ(), asApp+"=-port 0 -guard=false -orders 300000", "TMPDIR="+dir)
	var complaints strings.Builder
	app.Stderr = &complaints
	out, err := app.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var url string
	for !strings.Contains(lines.Text(), "Ctrl-C") && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), "Replica 1: "); ok {
			url = after
		}
	}
	stampede := make(chan error, 1)
	go func() {
		response, err := http.Post(url+"burst?n=300", "", nil)
		if err == nil {
			err = response.Body.Close()
		}
		stampede <- err
	}()
	awaitRuns(t, url)

	if err := app.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := app.Wait(); err != nil || complaints.Len() > 0 {
		t.Errorf("ended with %v and says %q, want neither", err, complaints.String())
	}
	<-stampede
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

// awaitRuns waits until the database is at work.
func awaitRuns(t *testing.T, url string) {
	t.Helper()
	for {
		_, _, body := call(t, http.MethodGet, url+"news")
		if !strings.Contains(body, `"running":[]`) {
			return
		}
	}
}

// TestInterruptWhileStarting: Ctrl-C before the app serves is no error, and
// leaves nothing behind.
func TestInterruptWhileStarting(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := run(ctx, strings.Fields("-port 0 -orders 100000000"), io.Discard); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

// TestRunRefuses: what cannot be started is an error that names the flag.
func TestRunRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := gone.Addr().String()
	gone.Close()

	for args, want := range map[string]string{
		"-port 0 -orders 0":                            "-orders 0",
		"-port 0 -store etcd://localhost":              `-store "etcd://localhost"`,
		"-port 0 more":                                 `"more"`,
		"-orders 10 -port " + port:                     "-port chooses others",
		"-orders 10 -store memcached://" + nobody:      "does not answer",
		"-orders 10 -store redis://u:pw@" + nobody:     "redis://u:xxxxx@" + nobody,
		"-port 0 -db " + t.TempDir() + "/no/orders.db": "no/orders.db",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", args, err, want)
		}
	}
}
