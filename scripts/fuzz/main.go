// Command fuzz runs each fuzz test of the project for some minutes, one after the other, and
// keeps what reached new code as seeds below testdata/fuzz, so that the plain tests run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The bounds of the seeds that are kept of one fuzz test: more would make the plain tests
// slow and the repository large.
const (
	mostSeeds = 100
	seedBytes = 4 << 10
)

// minimize is how often an input is tried to be made smaller. The default, a minute, is spent
// on nearly each new input of an archive and leaves nothing for the search.
const minimize = "10x"

func main() {
	each := flag.Duration("time", 10*time.Minute, "how long each fuzz test runs")
	only := flag.String("run", ".", "regular expression of folder/name, as dnsd/FuzzRespond")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *each, *only); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// target is one fuzz test.
type target struct{ folder, name string }

func run(ctx context.Context, each time.Duration, only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	targets, err := find(".")
	if err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return !match.MatchString(t.folder + "/" + t.name) })
	if len(targets) == 0 {
		return fmt.Errorf("no fuzz test matches %q", only)
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	for i, t := range targets {
		fmt.Printf("%d of %d: %s in %s, for %s\n", i+1, len(targets), t.name, t.folder, each)
		c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(),
			"-fuzzminimizetime", minimize, "./"+t.folder)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = time.Minute
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s in %s: %w", t.name, t.folder, err)
		}
		kept, err := keep(strings.TrimSpace(string(cache)), t)
		if err != nil {
			return err
		}
		fmt.Printf("%d seeds are new in %s\n", kept, filepath.Join(t.folder, "testdata/fuzz", t.name))
	}
	return nil
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// find lists the fuzz tests below root, by folder and name.
func find(root string) (list []target, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			list = append(list, target{filepath.ToSlash(filepath.Dir(path)), string(m[1])})
		}
		return err
	})
	return list, err
}

// keep copies small inputs of the go command's cache, the shortest first, beside those that
// are seeds already; it returns how many.
func keep(cache string, t target) (int, error) {
	found, err := filepath.Glob(filepath.Join(cache, "fuzz", "*", "*", "*", t.folder, t.name, "*"))
	if err != nil {
		return 0, err
	}
	type input struct {
		path string
		size int64
	}
	var inputs []input
	for _, path := range found {
		if st, err := os.Stat(path); err == nil && st.Size() <= seedBytes {
			inputs = append(inputs, input{path, st.Size()})
		}
	}
	slices.SortFunc(inputs, func(a, b input) int { return int(a.size - b.size) })
	dir := filepath.Join(t.folder, "testdata/fuzz", t.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	kept := 0
	for _, in := range inputs {
		to := filepath.Join(dir, filepath.Base(in.path))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if len(there)+kept >= mostSeeds {
			break
		}
		text, err := os.ReadFile(in.path)
		if err != nil {
			return kept, err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return kept, err
		}
		kept++
	}
	return kept, nil
}
