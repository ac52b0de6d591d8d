package herdgate_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var moduleRules = []rule{{
	name:    "RootRequirements",
	promise: "one go get serves most users; heavier clients live in nested modules",
	check:   rootRequirements,
	broken: []violation{{
		tree{"go.mod": "module m\n\ngo 1.26.0\n\nrequire example.com/heavy v1.0.0\n"},
		"go.mod requires example.com/heavy",
	}},
}, {
	name:    "TestOnlyRequirements",
	promise: "porcupine, the linearizability checker, is for tests",
	check:   testOnlyRequirements,
	broken: []violation{{
		tree{"guard/guard.go": "package guard\nimport \"" + porcupine + "\""},
		"guard/guard.go imports " + porcupine,
	}},
}, {
	name:    "GoLinesAgree",
	promise: "all modules and the workspace state the same Go version",
	check:   goLinesAgree,
	broken: []violation{{
		tree{"go.mod": "go 1.26.0\n", "go.work": "go 1.26.0\n", "loadtest/go.mod": "go 1.25.0\n"},
		`loadtest/go.mod says "go 1.25.0"`,
	}},
}, {
	name:    "WorkspaceIsComplete",
	promise: "go.work lists every module, so that one command tests them all",
	check:   workspaceIsComplete,
	broken: []violation{{
		tree{"go.mod": "", "loadtest/go.mod": "", "go.work": "use .\n"},
		"go.work does not use ./loadtest",
	}},
}, {
	name:    "ModulesBuildAlone",
	promise: "a nested module finds this checkout without go.work",
	check:   modulesBuildAlone,
	broken: []violation{{
		tree{"go.mod": "", "examples/a/go.mod": "require " + module + " v0.0.0\n"},
		"examples/a/go.mod does not replace " + module + " with ../..",
	}},
}}

const porcupine = "github.com/anishathalye/porcupine"

// mayRequire is what the root module may require directly.
var mayRequire = []string{
	"github.com/bradfitz/gomemcache",
	"github.com/labstack/echo/v4",
	"github.com/maypok86/otter/v2",
	"github.com/redis/go-redis/v9",
	"golang.org/x/sync",
	porcupine,
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) v\S+[ \t]*$`)

func rootRequirements(f tree) []string {
	var complaints []string
	for _, m := range requirement.FindAllStringSubmatch(f["go.mod"], -1) {
		if !slices.Contains(mayRequire, m[1]) {
			complaints = append(complaints, "go.mod requires "+m[1])
		}
	}
	return complaints
}

func testOnlyRequirements(f tree) []string {
	var complaints []string
	for _, name := range f.production() {
		if path.Dir(name) != "store/storetest" && slices.Contains(f.imports(name), porcupine) {
			complaints = append(complaints, name+" imports "+porcupine)
		}
	}
	return complaints
}

var goLine = regexp.MustCompile(`(?m)^go \S+$`)

func goLinesAgree(f tree) []string {
	want := goLine.FindString(f["go.mod"])
	var complaints []string
	for _, name := range append(f.modules(), "go.work") {
		if have := goLine.FindString(f[name]); have != want {
			complaints = append(complaints, fmt.Sprintf("%s says %q, go.mod says %q", name, have, want))
		}
	}
	return complaints
}

func workspaceIsComplete(f tree) []string {
	used := strings.Fields(f["go.work"])
	var complaints []string
	for _, name := range f.modules() {
		dir := "./" + path.Dir(name)
		if dir == "./." {
			dir = "."
		}
		if !slices.Contains(used, dir) {
			complaints = append(complaints, "go.work does not use "+dir)
		}
	}
	return complaints
}

func modulesBuildAlone(f tree) []string {
	var complaints []string
	for _, name := range f.modules() {
		dir := path.Dir(name)
		if dir == "." {
			continue
		}
		up := strings.Repeat("../", strings.Count(dir, "/")) + ".."
		line := regexp.MustCompile(`(?m)^(?:replace)?\s*` + regexp.QuoteMeta(module+" => "+up) + `/?$`)
		if !line.MatchString(f[name]) {
			complaints = append(complaints, fmt.Sprintf("%s does not replace %s with %s", name, module, up))
		}
	}
	return complaints
}

// modules returns the paths of all go.mod files.
func (f tree) modules() []string {
	return f.names(func(name string) bool { return path.Base(name) == "go.mod" })
}
