package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/go-echarts/v2/render"
)

// echartsJS is Apache ECharts 5.6.0, its common build, so that the report
// opens without a network. See echarts/LICENSE and echarts/NOTICE.
//
//go:embed echarts/echarts.common.min.js
var echartsJS string

//go:embed report.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// pageData is what the template shows.
type pageData struct {
	Report     *report
	Conditions string
	Broken     []string
	Missing    []string
	Met, All   int
	ECharts    template.JS
	Sections   []pageSection
}

type pageSection struct {
	section
	Columns []string
	Rows    []pageRow
	Charts  []template.HTML
}

type pageRow struct {
	Contender string
	Cells     []string
	Failed    string
	Notes     []string
}

// html returns the report as one page that needs nothing else.
func (r *report) html() ([]byte, error) {
	data := pageData{
		Report: r, Conditions: r.conditions(), Broken: r.broken(), Missing: r.missing(),
		ECharts: template.JS(echartsJS),
	}
	data.Met, data.All = r.targets()
	for _, s := range r.Sections {
		p := pageSection{section: s, Columns: s.columns()}
		for _, res := range s.Results {
			row := pageRow{Contender: res.Contender, Failed: res.Failed, Notes: res.Notes}
			if res.Failed == "" {
				row.Cells = res.row(p.Columns)
			}
			p.Rows = append(p.Rows, row)
		}
		p.Charts = s.charts()
		data.Sections = append(data.Sections, p)
	}
	var page bytes.Buffer
	err := pageTemplate.Execute(&page, data)
	return page.Bytes(), err
}

// charts returns a chart of the latencies, if there are any, and one of a
// figure.
func (s section) charts() (snippets []template.HTML) {
	if chart := s.curves(); chart != nil {
		snippets = append(snippets, inline(chart.RenderSnippet()))
	}
	if chart := s.bars(); chart != nil {
		snippets = append(snippets, inline(chart.RenderSnippet()))
	}
	return snippets
}

// inline returns a chart as part of a page. The library's own page would fetch
// ECharts from the network.
func inline(s render.ChartSnippet) template.HTML {
	return template.HTML(s.Element + s.Script)
}

func look(title string) []charts.GlobalOpts {
	return []charts.GlobalOpts{
		charts.WithInitializationOpts(opts.Initialization{Width: "560px", Height: "340px"}),
		charts.WithTitleOpts(opts.Title{Title: title}),
		charts.WithLegendOpts(opts.Legend{Bottom: "0"}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis"}),
		charts.WithGridOpts(opts.Grid{Bottom: "80", ContainLabel: opts.Bool(true)}),
		charts.WithAnimation(false),
	}
}

// leastShown keeps zero on a logarithmic axis: a hundredth of a millisecond.
const leastShown = 0.01

// curves draws the latency at each quantile, a line per contender.
func (s section) curves() *charts.Line {
	line := charts.NewLine()
	line.SetGlobalOptions(append(look("time of a call, by the share that took no longer"),
		charts.WithYAxisOpts(opts.YAxis{Type: "log", AxisLabel: &opts.AxisLabel{Formatter: "{value} ms"}}),
	)...)
	names := make([]string, len(curve))
	for i, q := range curve {
		names[i] = fmt.Sprintf("%g %%", 100*q)
	}
	line.SetXAxis(names)
	drawn := false
	for _, r := range s.Results {
		if len(r.Curve) == 0 {
			continue
		}
		points := make([]opts.LineData, len(r.Curve))
		for i, v := range r.Curve {
			points[i] = opts.LineData{Value: max(v, leastShown)}
		}
		line.AddSeries(r.Contender, points)
		drawn = true
	}
	if !drawn {
		return nil
	}
	return line
}

// telling returns the figure in which the contenders differ: the first of the
// targets' figures that does, else of all.
func (s section) telling() (name string, ok bool) {
	var names []string
	for _, v := range s.Verdicts {
		names = append(names, v.Figure)
	}
	for _, name := range append(names, s.columns()...) {
		values := map[float64]bool{}
		for _, r := range s.Results {
			if f, ok := r.figure(name); ok && !f.Never {
				values[f.Value] = true
			}
		}
		if len(values) > 1 {
			return name, true
		}
	}
	return "", false
}

// bars draws one figure of all contenders.
func (s section) bars() *charts.Bar {
	name, ok := s.telling()
	if !ok {
		return nil
	}
	var contenders []string
	var bars []opts.BarData
	for _, r := range s.Results {
		f, ok := r.figure(name)
		if !ok || f.Never {
			continue // no bar is high enough
		}
		contenders = append(contenders, r.Contender)
		bars = append(bars, opts.BarData{Value: f.Value, Name: f.String()})
	}
	bar := charts.NewBar()
	bar.SetGlobalOptions(append(look(name),
		charts.WithXAxisOpts(opts.XAxis{AxisLabel: &opts.AxisLabel{Rotate: 25}}),
		charts.WithLegendOpts(opts.Legend{Show: opts.Bool(false)}),
	)...)
	bar.SetXAxis(contenders).AddSeries(name, bars,
		charts.WithLabelOpts(opts.Label{Show: opts.Bool(true), Position: "top", Formatter: "{b}"}))
	return bar
}
