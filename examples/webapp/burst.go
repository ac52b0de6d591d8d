package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/herdgate/herdgate/cachefill"
)

const (
	usualBurst = 30
	maxBurst   = 1000
)

// burst is many requests at the same time, spread over the replicas.
type burst struct {
	Guard    string         `json:"guard"`
	Requests int            `json:"requests"`
	Answers  map[string]int `json:"answers"` // by outcome
	Runs     int            `json:"database_runs"`
	Median   int64          `json:"median_ms"`
	Slowest  int64          `json:"slowest_ms"`
}

// handleBurst sends n requests for a cold report (first=stale: for a stale
// one; first=none: for one as it is) and says what became of them.
func (r *replica) handleBurst(c echo.Context) error {
	guarded, err := r.guarded(c)
	if err != nil {
		return err
	}
	n, prepare, err := r.parseBurst(c)
	if err != nil {
		return err
	}
	if !r.fleet.bursting.TryLock() {
		return echo.NewHTTPError(http.StatusConflict, "another burst is under way")
	}
	defer r.fleet.bursting.Unlock()

	ctx := c.Request().Context()
	if err := prepare(ctx); err != nil {
		return echo.NewHTTPError(http.StatusServiceUnavailable, err.Error())
	}
	before := r.fleet.journal.allRuns()
	b := r.fleet.send(ctx, n, guarded)
	if b.Answers[cachefill.Stale.String()] > 0 {
		r.awaitFresh(ctx)
	}
	b.Runs = r.fleet.journal.allRuns() - before
	return c.JSONPretty(http.StatusOK, b, "  ")
}

// parseBurst returns how many requests are meant, and what brings the report
// into the state from which they begin.
func (r *replica) parseBurst(c echo.Context) (n int, prepare func(context.Context) error, err error) {
	n = usualBurst
	if text := c.QueryParam("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxBurst {
			return 0, nil, echo.NewHTTPError(http.StatusBadRequest, fmt.Sprintf("n=%q: want 1 to %d", text, maxBurst))
		}
	}
	switch first := c.QueryParam("first"); first {
	case "", "cold":
		return n, r.makeCold, nil
	case "stale":
		return n, r.makeStale, nil
	case "none":
		return n, func(context.Context) error { return nil }, nil
	default:
		return 0, nil, echo.NewHTTPError(http.StatusBadRequest, fmt.Sprintf("first=%q: want cold, stale or none", first))
	}
}

// send sends the requests, as many at once to each replica, over HTTP.
func (f *fleet) send(ctx context.Context, n int, guarded bool) burst {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	type answer struct {
		outcome string
		took    time.Duration
	}
	answers := make(chan answer, n)
	for i := range n {
		url := f.replicas[i%len(f.replicas)].url + "/report?guard=" + onOff(guarded)
		go func() {
			began := time.Now()
			outcome, err := ask(ctx, client, url)
			if err != nil {
				outcome = cachefill.Failed.String()
			}
			answers <- answer{outcome, time.Since(began)}
		}()
	}
	b := burst{Guard: onOff(guarded), Requests: n, Answers: make(map[string]int)}
	var took []time.Duration
	for range n {
		a := <-answers
		b.Answers[a.outcome]++
		took = append(took, a.took)
	}
	slices.Sort(took)
	b.Median, b.Slowest = took[n/2].Milliseconds(), took[n-1].Milliseconds()
	return b
}

// ask gets the report and returns what the replica did for it.
func ask(ctx context.Context, client *http.Client, url string) (outcome string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	return response.Header.Get(outcomeHeader), nil
}

// awaitFresh waits for the load behind stale answers, so that it is counted.
func (r *replica) awaitFresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		result, err := r.cache.Peek(ctx, reportKey)
		if err != nil || result.Outcome == cachefill.Fresh {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
