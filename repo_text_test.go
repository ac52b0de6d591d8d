package herdgate_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
)

var textRules = []rule{{
	name:    "DocumentsExist",
	promise: "the documents that a reader looks for are there",
	check:   documentsExist,
	broken: []violation{{
		tree{"README.md": ""},
		"LICENSE is missing",
	}},
}, {
	name:    "CommandsOfReadme",
	promise: "README names the two commands, and CI runs the second",
	check:   commandsOfReadme,
	broken: []violation{{
		tree{"README.md": "    " + runCommand + "\n    " + testCommand + "\n", ".ci/run": "go test ./...\n"},
		".ci/run does not run " + testCommand,
	}},
}, {
	name:    "ReadmeCodeIsTested",
	promise: "a block of Go code in a README is a copy of a tested example, and names it",
	check:   readmeCodeIsTested,
	broken: []violation{{
		tree{
			"README.md":            "<!-- example: fill/example_test.go ExampleGet -->\n```go\nold()\n```\n",
			"fill/example_test.go": "package fill_test\n\nfunc ExampleGet() {\n\tnew()\n\t// Output: x\n}\n",
		},
		"README.md:1: the block differs from fill/example_test.go ExampleGet, which is:\nnew()\n",
	}, {
		tree{"README.md": "<!-- example: main.go -->\n```go\npackage a\n```\n", "main.go": "package b\n"},
		"README.md:1: the block differs from main.go",
	}, {
		tree{"README.md": "Like this:\n\n```go\nuntested()\n```\n"},
		"README.md:3: no example is named before the block",
	}},
}, {
	name:    "LinksLead",
	promise: "links between documents lead to files that are there",
	check:   linksLead,
	broken: []violation{{
		tree{"docs/design.md": "see [the format](format.md#header)\n"},
		"docs/design.md links to docs/format.md",
	}},
}, {
	name:    "NoMachinePaths",
	promise: "no text knows the machine on which it was written",
	check:   noMachinePaths,
	broken: []violation{{
		tree{"docs/design.md": "measured in /" + "home/ada/src\n"},
		"docs/design.md:1",
	}},
}}

const (
	runCommand  = "go run ./examples/webapp"
	testCommand = "./scripts/test"
)

func documentsExist(f tree) []string {
	var complaints []string
	for _, name := range []string{
		"README.md", "LICENSE", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
		"docs/design.md", "docs/format.md", "docs/guarantees.md",
	} {
		if f[name] == "" {
			complaints = append(complaints, name+" is missing")
		}
	}
	return complaints
}

func commandsOfReadme(f tree) []string {
	var complaints []string
	for _, command := range []string{runCommand, testCommand} {
		if !strings.Contains(f["README.md"], command) {
			complaints = append(complaints, "README.md does not name "+command)
		}
	}
	if !strings.Contains(f[".ci/run"], "exec "+testCommand) {
		complaints = append(complaints, ".ci/run does not run "+testCommand)
	}
	return complaints
}

// codeBlock finds a block of Go code and the marker on the line before it:
//
//	<!-- example: cachefill/example_test.go ExampleCache_Get -->
//
// The block is the body of that function. Without a function it is the file.
var codeBlock = regexp.MustCompile("(?m)(?:^<!-- example: (\\S+) ?(\\S*) -->\n)?^```go\n((?:.*\n)*?)```$")

func readmeCodeIsTested(f tree) []string {
	var complaints []string
	for _, name := range f.names(func(name string) bool { return path.Base(name) == "README.md" }) {
		text := f[name]
		for _, at := range codeBlock.FindAllStringSubmatchIndex(text, -1) {
			line := fmt.Sprintf("%s:%d: ", name, 1+strings.Count(text[:at[0]], "\n"))
			if at[2] < 0 {
				complaints = append(complaints, line+"no example is named before the block")
				continue
			}
			file, function, code := text[at[2]:at[3]], text[at[4]:at[5]], text[at[6]:at[7]]
			if want := f.example(file, function); code != want {
				complaints = append(complaints, fmt.Sprintf("%sthe block differs from %s %s, which is:\n%s", line, file, function, want))
			}
		}
	}
	return complaints
}

// example returns the body of the function, not indented and without its
// Output comment, or the whole file if function is empty.
func (f tree) example(file, function string) string {
	source, ok := f[file]
	switch {
	case !ok:
		return "no file " + file
	case function == "":
		return source
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return err.Error()
	}
	for _, decl := range parsed.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		body := source[fset.Position(fn.Body.Lbrace).Offset+2 : fset.Position(fn.Body.Rbrace).Offset]
		body, _, _ = strings.Cut(body, "\n\t// Output:")
		body = regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, "")
		return strings.Trim(body, "\n") + "\n"
	}
	return "no function " + function + " in " + file
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func linksLead(f tree) []string {
	var complaints []string
	for _, name := range f.names(func(name string) bool { return path.Ext(name) == ".md" }) {
		for _, m := range link.FindAllStringSubmatch(f[name], -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue
			}
			if target = path.Join(path.Dir(name), target); !f.exists(target) {
				complaints = append(complaints, name+" links to "+target)
			}
		}
	}
	return complaints
}

// exists reports whether name is a file or a directory.
func (f tree) exists(name string) bool {
	return len(f.names(func(n string) bool { return n == name || strings.HasPrefix(n, name+"/") })) > 0
}

// machinePath does not match itself.
var machinePath = regexp.MustCompile(`(^|[^\w./-])/(work|root|farm|Users|home/\w+)/`)

func noMachinePaths(f tree) []string {
	return f.grep(f.names(func(string) bool { return true }), machinePath)
}
