package arch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// requirements judges go.mod without a network: each module that it requires for us is imported
// by a file, and each module that a file imports is required so, and not as an indirect one.
// 'make tidy-check' judges the rest, for which go asks the network.
func (c *checker) requirements() error {
	text, err := os.ReadFile(filepath.Join(c.root, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	direct, all := map[string]int{}, map[string]bool{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || !foreign(fields[0]) || !strings.HasPrefix(fields[1], "v") {
			continue
		}
		all[fields[0]] = true
		if !strings.HasSuffix(strings.TrimSpace(line), "// indirect") {
			direct[fields[0]] = number
		}
	}
	used := map[string]bool{}
	for path, at := range c.libs {
		name := moduleOf(path, all)
		used[name] = true
		if direct[name] == 0 {
			c.add(at.file, at.line, "%s is not a direct requirement of go.mod (make tidy)", path)
		}
	}
	for name, line := range direct {
		if !used[name] {
			c.add("go.mod", line, "no file imports %s (make tidy)", name)
		}
	}
	return nil
}

// moduleOf is the longest name in modules that an import path begins with.
func moduleOf(path string, modules map[string]bool) string {
	best := ""
	for name := range modules {
		if below(path, name) && len(name) > len(best) {
			best = name
		}
	}
	return best
}
