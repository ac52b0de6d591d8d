package herdgate_test

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/herdgate/herdgate"

var importRules = []rule{{
	name:    "ImportDirection",
	promise: "store <- guard <- cachefill <- middleware; stores import store only; servers are started and stores examined by tests and programs of ours",
	check:   importDirection,
	broken: []violation{{
		tree{"guard/guard.go": `package guard; import "` + module + `/cachefill"`},
		"guard/guard.go imports cachefill",
	}, {
		tree{"store/zkstore/lease.go": `package zkstore; import "` + module + `/store/memstore"`},
		"store/zkstore/lease.go imports store/memstore",
	}, {
		tree{"cachefill/near.go": `package cachefill; import "` + module + `/internal/servertest"`},
		"cachefill/near.go imports internal/servertest",
	}, {
		tree{"examples/webapp/main.go": `package main; import "` + module + `/store/storetest"`},
		"examples/webapp/main.go imports store/storetest",
	}, {
		tree{"newcomer/newcomer.go": `package newcomer; import "` + module + `/store"`},
		"newcomer/newcomer.go imports store",
	}},
}, {
	name:    "NoTestingInProduction",
	promise: "package testing is not linked into users' programs",
	check:   noTesting,
	broken: []violation{{
		tree{"guard/fake.go": `package guard; import "testing/fstest"`},
		"guard/fake.go imports testing/fstest",
	}},
}, {
	name:    "StoresAreConformant",
	promise: "every store runs the conformance suite",
	check:   storesAreConformant,
	broken: []violation{{
		tree{
			"store/oddstore/oddstore.go":      "package oddstore",
			"store/oddstore/oddstore_test.go": "package oddstore // storetest is only talked about",
		},
		"store/oddstore does not import storetest in a test",
	}},
}}

// layers says what production code may import of this repository: the first
// line that matches its directory decides, and a directory without one may
// import nothing. A pattern is that of path.Match; "/..." at its end adds
// everything below.
var layers = []struct {
	dir string
	may []string
}{
	{"store", nil},
	{"store/storetest", []string{"store", "store/memstore"}},
	{"store/*/...", []string{"store", "store/internal/..."}},
	{"guard/...", []string{"store", "guard/...", "internal/..."}},
	{"cachefill", []string{"store", "guard/...", "internal/...", "store/memstore"}}, // the default store
	{"middleware/...", []string{"store", "guard/...", "cachefill", "middleware/...", "internal/..."}},
	{"internal/servertest", nil},
	{"internal/...", []string{"store", "internal/..."}},
	{"examples/...", []string{"store/...", "guard/...", "cachefill", "middleware/...", "examples/...", "internal/..."}},
	{"loadtest/...", []string{"store/...", "guard/...", "cachefill", "middleware/...", "loadtest/...", "internal/..."}},
}

// restricted are packages that only the named directories may import, whatever
// layers says.
var restricted = map[string][]string{
	"store/storetest":     nil,
	"internal/servertest": {"examples/...", "loadtest/..."},
}

func importDirection(f tree) []string {
	var complaints []string
	for _, name := range f.production() {
		for _, imported := range f.imports(name) {
			target, ours := strings.CutPrefix(imported, module+"/")
			if ours && !mayImport(path.Dir(name), target) {
				complaints = append(complaints, name+" imports "+target)
			}
		}
	}
	return complaints
}

// mayImport reports whether production code in dir may import target.
func mayImport(dir, target string) bool {
	if who, ok := restricted[target]; ok {
		return matchesAny(who, dir)
	}
	for _, layer := range layers {
		if matches(layer.dir, dir) {
			return matchesAny(layer.may, target)
		}
	}
	return false
}

func matchesAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, dir) })
}

func matches(pattern, dir string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	parts, depth := strings.Split(dir, "/"), strings.Count(base, "/")+1
	if deep && len(parts) > depth {
		dir = strings.Join(parts[:depth], "/")
	}
	ok, err := path.Match(base, dir)
	return ok && err == nil
}

// isStore reports whether dir is the package of a store.
func isStore(dir string) bool {
	return matches("store/*", dir) && dir != "store/storetest" && dir != "store/internal"
}

func noTesting(f tree) []string {
	var complaints []string
	for _, name := range f.production() {
		if path.Dir(name) == "store/storetest" {
			continue
		}
		for _, imported := range f.imports(name) {
			if imported == "testing" || strings.HasPrefix(imported, "testing/") {
				complaints = append(complaints, name+" imports "+imported)
			}
		}
	}
	return complaints
}

func storesAreConformant(f tree) []string {
	conformant := make(map[string]bool)
	for _, name := range f.goFiles() {
		dir := path.Dir(name)
		if !isStore(dir) {
			continue
		}
		tested := strings.HasSuffix(name, "_test.go") && slices.Contains(f.imports(name), module+"/store/storetest")
		conformant[dir] = conformant[dir] || tested
	}
	var complaints []string
	for dir, ok := range conformant {
		if !ok {
			complaints = append(complaints, dir+" does not import storetest in a test")
		}
	}
	slices.Sort(complaints)
	return complaints
}

// imports returns the import paths of a Go file. A file that does not parse
// has none: the compiler complains about it.
func (f tree) imports(name string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), name, f[name], parser.ImportsOnly)
	if err != nil {
		return nil
	}
	var paths []string
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, imported)
	}
	return paths
}
