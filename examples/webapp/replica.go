package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/herdgate/herdgate/cachefill"
	"github.com/herdgate/herdgate/store"
)

const (
	reportKey = "sales"

	// outcomeHeader tells the burst what happened to its request.
	outcomeHeader = "X-Outcome"
)

// replica is one server of the app.
type replica struct {
	index    int
	url      string
	fleet    *fleet
	db       *database
	cache    *cachefill.Cache[Report]
	listener net.Listener
	server   *http.Server
}

func newReplica(f *fleet, index int, l net.Listener, db *database, s store.Cache) (*replica, error) {
	cache, err := cachefill.New(s, &cachefill.Options[Report]{
		Namespace: "webapp",
		Owner:     fmt.Sprintf("webapp replica %d", index+1),
		TTL:       30 * time.Second,
		Stale:     5 * time.Minute,
	})
	if err != nil {
		return nil, err
	}
	r := &replica{index: index, url: "http://" + l.Addr().String(), fleet: f, db: db, cache: cache, listener: l}
	r.server = &http.Server{
		Handler:           r.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return f.requests },
	}
	return r, nil
}

func (r *replica) routes() http.Handler {
	e := echo.New()
	e.GET("/report", r.handleReport)
	e.POST("/cold", r.handleCold)
	e.POST("/stale", r.handleStale)
	e.POST("/burst", r.handleBurst)
	e.GET("/news", r.handleNews)
	r.routePage(e)
	return e
}

// report is what the app is about: with the guard, one replica computes the
// report and all others get it; without, every request computes it.
func (r *replica) report(ctx context.Context, guarded bool) (report Report, outcome string, err error) {
	if !guarded {
		report, err = r.load(ctx)
		return report, unguarded, err
	}
	result, err := r.cache.Fetch(ctx, reportKey, r.load)
	return result.Value, result.Outcome.String(), err
}

// load is the loader. It takes nothing from a request: Echo uses its contexts
// again, and a load may outlive the request that brought it.
func (r *replica) load(ctx context.Context) (Report, error) {
	ended := r.fleet.journal.run(r.index)
	defer ended()
	return r.db.sales(ctx)
}

func (r *replica) handleReport(c echo.Context) error {
	guarded, err := r.guarded(c)
	if err != nil {
		return err
	}
	began := time.Now()
	report, outcome, err := r.report(c.Request().Context(), guarded)
	if err != nil {
		outcome = cachefill.Failed.String()
	}
	r.fleet.journal.answered(r.index, outcome, began)
	c.Response().Header().Set(outcomeHeader, outcome)
	if err != nil {
		return echo.NewHTTPError(http.StatusServiceUnavailable, err.Error())
	}
	return c.JSONPretty(http.StatusOK, report, "  ")
}

func (r *replica) handleCold(c echo.Context) error  { return done(c, r.makeCold) }
func (r *replica) handleStale(c echo.Context) error { return done(c, r.makeStale) }

// makeCold removes the report, for all replicas.
func (r *replica) makeCold(ctx context.Context) error {
	return r.cache.Invalidate(ctx, reportKey)
}

// makeStale makes the report too old, for all replicas.
func (r *replica) makeStale(ctx context.Context) error {
	if _, err := r.cache.Get(ctx, reportKey, r.load); err != nil {
		return err
	}
	return r.cache.Expire(ctx, reportKey)
}

// done answers a request for work that has no result.
func done(c echo.Context, work func(context.Context) error) error {
	if err := work(c.Request().Context()); err != nil {
		return echo.NewHTTPError(http.StatusServiceUnavailable, err.Error())
	}
	return c.NoContent(http.StatusNoContent)
}

// guarded is what the request says about the guard, or else the flag.
func (r *replica) guarded(c echo.Context) (bool, error) {
	switch guard := c.QueryParam("guard"); guard {
	case "":
		return r.fleet.config.guard, nil
	case "on":
		return true, nil
	case "off":
		return false, nil
	default:
		return false, echo.NewHTTPError(http.StatusBadRequest, fmt.Sprintf("guard=%q: want on or off", guard))
	}
}
