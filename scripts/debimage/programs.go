package main

import (
	"archive/tar"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Program is the import path of a Go program and the line it is on.
type Program struct {
	Path string
	Line int
}

var programPath = regexp.MustCompile(`^[a-z0-9.-]+\.[a-z]+(/[A-Za-z0-9._~-]+)+$`)

// module is the folder of the Go module that pins a list's programs and all that is in them: its go.mod and go.sum.
func (l List) module() string { return strings.TrimSuffix(l.Path, ".list") }

// AddPrograms builds the Go programs of l, static, into usr/bin: the same module and the same Go give the same bytes. The go
// command checks what it downloads against go.sum.
func (t Tree) AddPrograms(l List) error {
	for _, p := range l.Programs {
		if err := t.addProgram(l.module(), p); err != nil {
			return fmt.Errorf("%s:%d: %w", l.Path, p.Line, err)
		}
	}
	return nil
}

func (t Tree) addProgram(module string, p Program) error {
	tmp, err := os.MkdirTemp("", "program")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	// With a slash at its end -o is a folder, in which the go command names the file.
	if _, err := goCommand(module, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", tmp+"/", p.Path); err != nil {
		return fmt.Errorf("%w\nthis image needs the Go module proxy, and %s must pin the program", err, filepath.Join(module, "go.mod"))
	}
	built, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(built) != 1 {
		return fmt.Errorf("go build of %s wrote %d files, want 1", p.Path, len(built))
	}
	content, err := os.ReadFile(built[0])
	if err != nil {
		return err
	}
	name := filepath.Base(built[0])
	if err := t.add("usr/bin/"+name, Entry{Type: tar.TypeReg, Mode: 0o755, Content: content, From: p.Path}); err != nil {
		return err
	}
	licenses, err := licensesOf(module, p)
	if err != nil {
		return err
	}
	doc := path.Join("usr/share/doc", name)
	t.absent(doc, Entry{Type: tar.TypeDir, Mode: 0o755, From: p.Path})
	e := file(licenses)
	e.From = p.Path
	return t.add(doc+"/copyright", e)
}

// licensesOf is what the modules in a program say of how they may be copied. (The standard library is of none.)
func licensesOf(module string, p Program) (string, error) {
	out, err := goCommand(module, "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}", p.Path)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	lines := strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		name, folder, _ := strings.Cut(line, "\t")
		for _, pattern := range []string{"LICENSE*", "COPYING*", "NOTICE*"} {
			files, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				return "", err
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&all, "%s, %s:\n\n%s\n", name, filepath.Base(f), text)
			}
		}
	}
	return all.String(), nil
}

// goCommand runs the go command in a module and returns what it printed.
func goCommand(module string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(problem.String()))
	}
	return string(out), nil
}
