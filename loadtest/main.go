// Command loadtest measures what a stampede costs, and what a guard against it
// costs: with none, with coalescing in the process only, with herdgate, and
// with other libraries. It starts real server processes, which are copies of
// itself, against a real Redis, and provokes what happens to both.
//
// From the root of the repository:
//
//	go run ./loadtest -quick
//	go run ./loadtest
//
// It prints a table, writes report.json and report.html into the -out
// directory, and exits with 1 if herdgate broke one of its laws. A missed
// target is no broken law: it is printed, and the exit status is 0. Exit
// status 2 means that not everything could be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// scenarios are all there are, in the order of the report.
var scenarios = []scenario{
	coldKey, steadyKey, failingEverywhere, failingOne, leaderLeaves, impatientClients,
	panickingLoader, hangingLoader, tooLarge, leaderKilled, leaderPaused, invalidateDuringLoad,
	redisKilled, redisPaused, redisRestarted, hotHits, nearHits, manyWaiters, manyKeys, contendedGuard,
}

// The exit statuses.
const (
	exitKept       = 0
	exitBroken     = 1
	exitIncomplete = 2
)

func main() {
	if os.Getenv(workerEnv) != "" {
		if err := runWorker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// flags are what the user asks for.
type flags struct {
	quick  bool
	time   time.Duration
	repeat int
	redis  string
	run    string
	peers  string
	out    string
	list   bool
}

func parseFlags(args []string, stderr io.Writer) (f flags, err error) {
	set := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.BoolVar(&f.quick, "quick", false, "fewer repetitions and shorter runs, and most scenarios without the other libraries")
	set.DurationVar(&f.time, "time", 20*time.Minute, "stop after this `duration`, whatever is left to do")
	set.IntVar(&f.repeat, "repeat", 0, "how `often` herdgate meets the cold key, the others a quarter of it (default 200, quick 20)")
	set.StringVar(&f.redis, "redis", "", "`address` of a Redis to use (default: start one; scenarios that harm it start their own anyway)")
	set.StringVar(&f.run, "run", "", "comma-separated `scenarios` to run (default: all)")
	set.StringVar(&f.peers, "peers", "", "comma-separated `contenders` to compare with herdgate, \"none\" for none (default: all)")
	set.StringVar(&f.out, "out", "loadtest/report", "`directory` of report.json and report.html")
	set.BoolVar(&f.list, "list", false, "list scenarios and contenders")
	if err = set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("loadtest: unexpected argument %q", set.Arg(0))
	}
	if f.repeat < 0 || f.time <= 0 {
		return f, errors.New("loadtest: -repeat and -time must be positive")
	}
	return f, nil
}

// run is the command. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitKept
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitIncomplete
	}
	if f.list {
		list(stdout)
		return exitKept
	}
	chosen, err := choose(scenarios, f)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitIncomplete
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.time, errTimeUp)
	defer cancel()
	b, err := newBench(ctx, f.redis)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitIncomplete
	}
	defer b.close()
	b.quick = f.quick
	b.repeat = or(f.repeat, pick(b, 200, 20))
	b.progress = newProgress(os.Stderr, f.time)
	rep := b.runAll(chosen, stdout)
	rep.Command = commandLine(args)
	rep.summary(stdout)
	if err := rep.write(f.out, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return exitIncomplete
	}
	return rep.status()
}

// commandLine returns what to type to get the same run.
func commandLine(args []string) string {
	line := "go run ./loadtest"
	for _, arg := range args {
		if strings.ContainsAny(arg, " \"'$`\\") {
			arg = strconv.Quote(arg)
		}
		line += " " + arg
	}
	return line
}

var errTimeUp = errors.New("loadtest: the time is up")

// choose returns the scenarios that the flags name, with the contenders that
// they name.
func choose(all []scenario, f flags) ([]scenario, error) {
	wanted := split(f.run)
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(s scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("loadtest: no scenario is called %q, see -list", name)
		}
	}
	peers := split(f.peers)
	for _, name := range peers {
		known := func(s scenario) bool { return slices.Contains(s.contenders(), name) }
		if name != "none" && !slices.ContainsFunc(all, known) {
			return nil, fmt.Errorf("loadtest: no contender is called %q, see -list", name)
		}
	}
	var chosen []scenario
	for _, s := range all {
		if len(wanted) > 0 && !slices.Contains(wanted, s.Name) {
			continue
		}
		s.Contenders = slices.DeleteFunc(slices.Clone(s.contenders()), func(c string) bool {
			return c != herdgate && !takesPart(s, c, peers, f.quick)
		})
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// takesPart reports whether another contender than herdgate is measured.
func takesPart(s scenario, contender string, peers []string, quick bool) bool {
	if len(peers) > 0 {
		return slices.Contains(peers, contender)
	}
	return !quick || s.AlwaysAll || contender == noGuard || contender == processOnly
}

func split(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func list(w io.Writer) {
	for _, s := range scenarios {
		fmt.Fprintf(w, "%-16s %s\n%16s %s\n", s.Name, s.About, "", strings.Join(s.contenders(), ", "))
	}
}

// runAll measures the scenarios one after another, until the time is up.
func (b *bench) runAll(chosen []scenario, out io.Writer) *report {
	rep := newReport(b)
	stop := b.progress.watch()
	defer stop()
	n, of := 0, 0
	for _, s := range chosen {
		of += len(s.Contenders)
	}
	for _, s := range chosen {
		section := section{Name: s.Name, About: s.About}
		for _, contender := range s.Contenders {
			n++
			b.progress.enter(n, of, s.Name, contender)
			section.Results = append(section.Results, b.measure(s, contender))
			if b.ctx.Err() != nil {
				break
			}
		}
		section.Verdicts = judge(s.Targets, section.Results)
		rep.Sections = append(rep.Sections, section)
		b.progress.clear()
		section.print(out)
		if b.ctx.Err() != nil {
			rep.Incomplete = context.Cause(b.ctx).Error()
			break
		}
	}
	rep.Took = time.Since(rep.Date).Round(time.Second).String()
	return rep
}

// measure runs one contender through a scenario. A herdgate process that dies
// breaks a law; that of another library is a result.
func (b *bench) measure(s scenario, contender string) *result {
	r, err := s.Run(b, contender)
	if err == nil {
		return r
	}
	r = &result{Contender: contender, Failed: err.Error()}
	if errors.Is(err, errCrashed) {
		r.check(broken(5, "%v", err))
	}
	return r
}
