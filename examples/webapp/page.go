package main

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
)

//go:embed page
var pageFiles embed.FS

var pageTemplate = template.Must(template.ParseFS(pageFiles, "page/page.html"))

// routePage serves the page and the files that it consists of.
func (r *replica) routePage(e *echo.Echo) {
	e.GET("/", r.handlePage)
	for _, name := range []string{"page.css", "page.js", "timeline.js"} {
		e.FileFS("/"+name, "page/"+name, pageFiles)
	}
}

// handlePage renders the page. It does not ask for the report: its script does.
func (r *replica) handlePage(c echo.Context) error {
	guarded, err := r.guarded(c)
	if err != nil {
		return err
	}
	type link struct {
		Number int
		URL    string
		Self   bool
	}
	var links []link
	for _, other := range r.fleet.replicas {
		links = append(links, link{other.index + 1, other.url, other == r})
	}
	var page bytes.Buffer
	err = pageTemplate.Execute(&page, map[string]any{
		"Self":     r.index + 1,
		"Replicas": links,
		"Store":    storageName(r.fleet.config.store),
		"Memory":   r.fleet.config.store == "memory",
		"Guarded":  guarded,
		"Burst":    usualBurst,
	})
	if err != nil {
		return err
	}
	return c.HTMLBlob(http.StatusOK, page.Bytes())
}

// handleNews tells the page what happened since it last asked.
func (r *replica) handleNews(c echo.Context) error {
	next, err := strconv.Atoi(c.QueryParam("next"))
	if err != nil {
		next = 0
	}
	return c.JSON(http.StatusOK, r.fleet.journal.newsFrom(next))
}
