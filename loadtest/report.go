package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run has found, as report.json holds it.
type report struct {
	Command    string            `json:"command"`
	Date       time.Time         `json:"date"`
	Took       string            `json:"took"`
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu"`
	Go         string            `json:"go"`
	Redis      string            `json:"redis"`
	Versions   map[string]string `json:"versions"`
	Quick      bool              `json:"quick"`
	Incomplete string            `json:"incomplete,omitempty"` // why not all was measured
	Sections   []section         `json:"scenarios"`
}

// section is one scenario.
type section struct {
	Name     string    `json:"name"`
	About    string    `json:"about"`
	Results  []*result `json:"results"`
	Verdicts []verdict `json:"targets,omitempty"`
}

func newReport(b *bench) *report {
	return &report{
		Date: time.Now(), CPUs: runtime.NumCPU(), CPU: cpuModel(), Go: runtime.Version(),
		Redis: redisVersion(b.ctx, b.addr) + " at " + b.addr, Versions: versions(), Quick: b.quick,
	}
}

// versions returns the versions of the libraries that are compared.
func versions() map[string]string {
	compared := map[string]bool{
		"github.com/redis/go-redis/v9": true, "github.com/redis/rueidis/rueidisaside": true,
		"github.com/redis/rueidis": true, "github.com/go-redis/cache/v9": true,
		"github.com/go-redsync/redsync/v4": true, "github.com/bsm/redislock": true,
		"github.com/maypok86/otter/v2": true, "golang.org/x/sync": true,
	}
	found := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, m := range info.Deps {
		if compared[m.Path] {
			found[m.Path] = m.Version
		}
	}
	return found
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "\t :"))
}

// print writes the section as a table.
func (s section) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %s\n", s.Name, s.About)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := s.columns()
	fmt.Fprintf(w, "  \t%s\n", strings.Join(header, "\t"))
	for _, r := range s.Results {
		fmt.Fprintf(w, "  %s\t%s\n", r.Contender, strings.Join(r.row(header), "\t"))
	}
	_ = w.Flush()
	for _, v := range s.Verdicts {
		fmt.Fprintf(out, "  %s %s: %s; reach: %s\n", v.mark(), v.Figure, v.Got, v.Reach)
	}
	for _, r := range s.Results {
		for _, note := range r.Notes {
			fmt.Fprintf(out, "  %s: %s\n", r.Contender, note)
		}
		for _, v := range r.Broken {
			fmt.Fprintf(out, "  BROKEN law %d: %s\n", v.Law, v.Text)
		}
	}
}

func (v verdict) mark() string {
	if v.Met {
		return "met   "
	}
	return "MISSED"
}

// columns returns the names of the figures, in the order of their appearance.
func (s section) columns() (names []string) {
	seen := map[string]bool{}
	for _, r := range s.Results {
		for _, f := range r.Figures {
			if !seen[f.Name] {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// row returns the figures under the columns.
func (r *result) row(columns []string) []string {
	if r.Failed != "" {
		return []string{firstLine(r.Failed)}
	}
	cells := make([]string, len(columns))
	for i, name := range columns {
		cells[i] = "–"
		if f, ok := r.figure(name); ok {
			cells[i] = f.String()
		}
	}
	return cells
}

// broken returns the laws that were broken, with the scenario's name.
func (r *report) broken() (texts []string) {
	for _, s := range r.Sections {
		for _, res := range s.Results {
			for _, v := range res.Broken {
				texts = append(texts, fmt.Sprintf("%s: law %d: %s", s.Name, v.Law, v.Text))
			}
		}
	}
	return texts
}

// targets counts the targets, and those that were met.
func (r *report) targets() (met, all int) {
	for _, s := range r.Sections {
		for _, v := range s.Verdicts {
			all++
			if v.Met {
				met++
			}
		}
	}
	return met, all
}

// missing returns what was not measured of herdgate.
func (r *report) missing() (texts []string) {
	if r.Incomplete != "" {
		texts = append(texts, r.Incomplete)
	}
	for _, s := range r.Sections {
		for _, res := range s.Results {
			if res.Contender == herdgate && res.Failed != "" {
				texts = append(texts, s.Name+": "+res.Failed)
			}
		}
	}
	return texts
}

// status is the exit status: a broken law counts more than a missing figure.
func (r *report) status() int {
	switch {
	case len(r.broken()) > 0:
		return exitBroken
	case len(r.missing()) > 0:
		return exitIncomplete
	default:
		return exitKept
	}
}

// conditions says in one line under which the figures were measured.
func (r *report) conditions() string {
	return fmt.Sprintf("%s · %d CPUs (%s) · %s · Redis %s · took %s",
		r.Date.Format("2006-01-02 15:04 MST"), r.CPUs, r.CPU, r.Go, r.Redis, r.Took)
}

// summary writes what counts.
func (r *report) summary(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", r.conditions())
	for _, text := range r.missing() {
		fmt.Fprintf(out, "NOT MEASURED: %s\n", text)
	}
	for _, text := range r.broken() {
		fmt.Fprintf(out, "BROKEN %s\n", text)
	}
	if len(r.broken()) == 0 {
		fmt.Fprintln(out, "no law was broken in what was measured")
	}
	met, all := r.targets()
	fmt.Fprintf(out, "%d of %d targets met\n", met, all)
}

// write writes report.json and report.html into dir.
func (r *report) write(dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return fmt.Errorf("loadtest: report.json: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	page, err := r.html()
	if err != nil {
		return fmt.Errorf("loadtest: report.html: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.html"), page, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "written to %s: report.json, report.html\n", dir)
	return nil
}

// MarshalJSON writes figures that are no numbers as null.
func (f figure) MarshalJSON() ([]byte, error) {
	type plain figure
	if !f.Never && !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
		return json.Marshal(plain(f))
	}
	return json.Marshal(struct {
		plain
		Value any `json:"value"`
	}{plain: plain(f)})
}
