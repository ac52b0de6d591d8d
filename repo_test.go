package herdgate_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// A rule is something that holds for the whole repository and that no
// package's own tests would notice.
type rule struct {
	name    string
	promise string
	check   func(tree) []string // the complaints, none if the rule is kept
	broken  []violation         // the negative controls
}

// A violation is a tree that breaks a rule, and part of the complaint about it.
type violation struct {
	tree tree
	want string
}

var rules = slices.Concat(importRules, moduleRules, sourceRules, textRules)

// TestRepository checks every rule twice: the repository keeps it, and trees
// that break it are caught.
func TestRepository(t *testing.T) {
	repository := readTree(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if complaints := r.check(repository); len(complaints) > 0 {
				t.Errorf("the rule: %s\n%s", r.promise, strings.Join(complaints, "\n"))
			}
			for _, v := range r.broken {
				complaints := strings.Join(r.check(v.tree), "\n")
				if !strings.Contains(complaints, v.want) {
					t.Errorf("negative control: complaints %q, want one with %q", complaints, v.want)
				}
			}
		})
	}
}

// tree is the text of files by their slash-separated paths.
type tree map[string]string

// readTree reads the text files of the repository, without what git and the
// load test keep in it.
func readTree(t *testing.T) tree {
	t.Helper()
	files := make(tree)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "loadtest/report"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(name)
		if err == nil && !strings.Contains(string(data), "\x00") {
			files[name] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// names returns the sorted paths that match accepts.
func (f tree) names(match func(name string) bool) []string {
	var names []string
	for name := range f {
		if match(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// goFiles returns the paths of the Go files, tests included.
func (f tree) goFiles() []string {
	return f.names(func(name string) bool { return path.Ext(name) == ".go" })
}

// production returns the paths of the Go files that are not tests.
func (f tree) production() []string {
	return f.names(func(name string) bool {
		return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go")
	})
}
