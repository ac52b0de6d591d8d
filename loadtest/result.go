package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// result is what one contender did in one scenario.
type result struct {
	Contender string      `json:"contender"`
	Figures   []figure    `json:"figures"`
	Curve     []float64   `json:"curve_ms,omitempty"` // at the quantiles of curve
	Broken    []violation `json:"broken,omitempty"`   // herdgate only: nobody else promised
	Notes     []string    `json:"notes,omitempty"`
	Failed    string      `json:"failed,omitempty"` // why there are no figures
}

// unit is what a figure counts.
type unit string

const (
	count     unit = ""
	millis    unit = "ms"
	nanos     unit = "ns"
	perSecond unit = "/s"
	bytesEach unit = "B"
	ratio     unit = "×"
)

// figure is one number of a result. Never stands for a time after which the
// bench stopped waiting.
type figure struct {
	Name  string  `json:"name"`
	Unit  unit    `json:"unit,omitempty"`
	Value float64 `json:"value"`
	Never bool    `json:"never,omitempty"`
}

func (f figure) String() string {
	switch {
	case f.Never:
		return "never"
	case math.IsNaN(f.Value):
		return "–"
	case f.Unit == count && f.Value == math.Trunc(f.Value):
		return grouped(int64(f.Value))
	case f.Unit == perSecond || f.Unit == bytesEach || math.Abs(f.Value) >= 10_000:
		return grouped(int64(math.Round(f.Value))) + suffix(f.Unit)
	case math.Abs(f.Value) >= 100:
		return fmt.Sprintf("%.0f", f.Value) + suffix(f.Unit)
	case math.Abs(f.Value) >= 10:
		return fmt.Sprintf("%.1f", f.Value) + suffix(f.Unit)
	default:
		return fmt.Sprintf("%.2f", f.Value) + suffix(f.Unit)
	}
}

func suffix(u unit) string {
	if u == count || u == perSecond || u == ratio {
		return string(u)
	}
	return " " + string(u)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (r *result) add(name string, u unit, value float64) {
	r.Figures = append(r.Figures, figure{Name: name, Unit: u, Value: value})
}

// count adds n to the figure of that name, which begins at zero.
func (r *result) count(name string, n int) {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			r.Figures[i].Value += float64(n)
			return
		}
	}
	r.add(name, count, float64(n))
}

func (r *result) addTime(name string, d time.Duration) { r.add(name, millis, ms(d)) }

// addQuantile adds the time that a part q of some calls did not exceed: never,
// if none came back.
func (r *result) addQuantile(name string, l latencies, q float64) {
	if len(l) == 0 {
		r.addNever(name, millis)
		return
	}
	r.addTime(name, l.at(q))
}

// addNever notes that something did not happen while the bench waited.
func (r *result) addNever(name string, u unit) {
	r.Figures = append(r.Figures, figure{Name: name, Unit: u, Never: true})
}

func (r *result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// outcomes notes what the contender says of the calls, if it says anything.
func (r *result) outcomes(calls []Call) {
	n := map[string]int{}
	for _, c := range calls {
		if c.Outcome != "" {
			n[c.Outcome]++
		}
	}
	if len(n) > 0 {
		r.note("calls: %s", tallied(n))
	}
}

// tallied lists names and their numbers, the most frequent first: "16 get, 8
// evalsha".
func tallied(n map[string]int) string {
	names := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(n[b]-n[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprint(grouped(int64(n[name])), " ", name)
	}
	return strings.Join(names, ", ")
}

// check notes the laws that are broken. They bind herdgate alone.
func (r *result) check(laws ...[]violation) {
	if r.Contender != herdgate {
		return
	}
	for _, v := range laws {
		r.Broken = append(r.Broken, v...)
	}
}

// checkCounts is check for laws on the number of loads, which hold while the
// store answers in time: else servers load for themselves, by law 9.
func (r *result) checkCounts(disturbed int, laws ...[]violation) {
	if disturbed == 0 {
		r.check(laws...)
		return
	}
	r.note("the store did not answer within its budget %d times: the number of loads is no law then", disturbed)
}

// figure returns the figure of that name.
func (r *result) figure(name string) (figure, bool) {
	if r == nil {
		return figure{}, false
	}
	i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.Name == name })
	if i < 0 {
		return figure{}, false
	}
	return r.Figures[i], true
}
