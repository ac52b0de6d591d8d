// Webapp is a small web app on three servers that shows a cache stampede, and
// how it ends with herdgate. Start it in the root of the repository and open
// one of the addresses that it prints:
//
//	go run ./examples/webapp
//
// Each replica is a server with a port, an Echo, a cache and a database pool
// of its own. All three run in this one process, so that the store can be in
// memory; with -store redis://… or memcached://… they share nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// config is what the flags say.
type config struct {
	port   int
	store  string
	guard  bool
	path   string
	orders int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "webapp:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := start(ctx, cfg)
	switch {
	case err != nil && ctx.Err() != nil: // Ctrl-C while starting
		return nil
	case err != nil:
		return err
	}
	f.describe(out)
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "Ending: no new requests, those under way may finish.")
		return f.close()
	case err := <-f.failed:
		return errors.Join(err, f.close())
	}
}

func parse(args []string) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("webapp", flag.ContinueOnError)
	flags.IntVar(&cfg.port, "port", 8081, "the first replica's port, the others take the next two; 0 for any free ones")
	flags.StringVar(&cfg.store, "store", "memory", "memory, redis://host:port/0 or memcached://host:port,host:port")
	flags.BoolVar(&cfg.guard, "guard", true, "guard the report; ?guard=on and ?guard=off override it")
	flags.StringVar(&cfg.path, "db", "", "the SQLite file, made if it is not there (default: a temporary one)")
	flags.IntVar(&cfg.orders, "orders", 200_000, "how many orders to make: the report takes longer with more")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if cfg.orders < 1 {
		return config{}, fmt.Errorf("-orders %d: there must be one at least", cfg.orders)
	}
	return cfg, nil
}
