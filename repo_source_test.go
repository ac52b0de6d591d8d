package herdgate_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxFileLines = 400
	maxFuncLines = 70
	laws         = 14 // see docs/design.md
)

var sourceRules = []rule{{
	name:    "PackageComments",
	promise: "every package has exactly one package comment",
	check:   packageComments,
	broken: []violation{{
		tree{"guard/a.go": "package guard\n", "guard/b.go": "package guard\n"},
		"guard has 0 package comments",
	}, {
		tree{"guard/a.go": "// Package guard is.\npackage guard\n", "guard/b.go": "// Package guard was.\npackage guard\n"},
		"guard has 2 package comments",
	}},
}, {
	name:    "ShortFiles",
	promise: fmt.Sprintf("no source file has more than %d lines", maxFileLines),
	check:   shortFiles,
	broken: []violation{{
		tree{"guard/long.go": strings.Repeat("\n", maxFileLines+1)},
		"guard/long.go has 401 lines",
	}},
}, {
	name:    "ShortFunctions",
	promise: fmt.Sprintf("no function has more than %d lines", maxFuncLines),
	check:   shortFunctions,
	broken: []violation{{
		tree{"guard/a_test.go": "package guard\nfunc (g *Guard) long() {" + strings.Repeat("\n", maxFuncLines) + "}\n"},
		"guard/a_test.go:2: long has 71 lines",
	}},
}, {
	name:    "LawsAreTested",
	promise: "every law of the design has tests named after it",
	check:   lawsAreTested,
	broken: []violation{{
		tree{"guard/law_test.go": "package guard\nfunc TestLaw10WorkFirst(t *testing.T) {}\n"},
		"law 1 has no test",
	}},
}, {
	name:    "NoSkippedTests",
	promise: "what a test needs and lacks is a failure, never a skipped test",
	check:   noSkippedTests,
	broken: []violation{{
		tree{"guard/a_test.go": "package guard\nfunc TestA(t *testing.T) { t.Skip" + "Now() }\n"},
		"guard/a_test.go:2",
	}},
}, {
	name:    "NothingUnfinished",
	promise: "what is not done is an issue, not a note in the code",
	check:   nothingUnfinished,
	broken: []violation{{
		tree{"scripts/release": "#!/bin/sh\n# FIX" + "ME: sign\n"},
		"scripts/release:2",
	}},
}}

func packageComments(f tree) []string {
	comments := make(map[string]int)
	for _, name := range f.production() {
		file, err := parser.ParseFile(token.NewFileSet(), name, f[name], parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			continue
		}
		dir := path.Dir(name)
		comments[dir] += 0
		if file.Doc != nil {
			comments[dir]++
		}
	}
	var complaints []string
	for dir, n := range comments {
		if n != 1 {
			complaints = append(complaints, fmt.Sprintf("%s has %d package comments", dir, n))
		}
	}
	slices.Sort(complaints)
	return complaints
}

func shortFiles(f tree) []string {
	var complaints []string
	for _, name := range f.sources() {
		if n := strings.Count(f[name], "\n"); n > maxFileLines {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines", name, n))
		}
	}
	return complaints
}

func shortFunctions(f tree) []string {
	var complaints []string
	for _, name := range f.goFiles() {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, f[name], parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
			if n := last - first + 1; n > maxFuncLines {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s has %d lines", name, first, fn.Name.Name, n))
			}
		}
	}
	return complaints
}

func lawsAreTested(f tree) []string {
	var complaints []string
	for law := 1; law <= laws; law++ {
		test := regexp.MustCompile(fmt.Sprintf(`(?m)^func TestLaw%d[A-Z_]`, law))
		if len(f.grep(f.goFiles(), test)) == 0 {
			complaints = append(complaints, fmt.Sprintf("law %d has no test", law))
		}
	}
	return complaints
}

// The patterns do not match themselves.
var (
	skippedTest = regexp.MustCompile(`\b(t|b|f|tb)[.]Skip(f|Now)?\(`)
	unfinished  = regexp.MustCompile(`\b(TO[D]O|FIX[M]E|XX[X])\b`)
)

func noSkippedTests(f tree) []string { return f.grep(f.goFiles(), skippedTest) }

func nothingUnfinished(f tree) []string { return f.grep(f.sources(), unfinished) }

// sources returns the paths of everything that is written by hand to be run.
func (f tree) sources() []string {
	return f.names(func(name string) bool {
		switch path.Ext(name) {
		case ".go", ".lua", ".sql", ".html", ".css", ".js", ".sh":
			return !strings.HasSuffix(name, ".min.js")
		}
		return strings.HasPrefix(f[name], "#!")
	})
}

// grep returns where in the files the pattern matches.
func (f tree) grep(names []string, pattern *regexp.Regexp) []string {
	var complaints []string
	for _, name := range names {
		for i, line := range strings.Split(f[name], "\n") {
			if pattern.MatchString(line) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(line)))
			}
		}
	}
	return complaints
}
