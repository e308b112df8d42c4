package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// step is one command line of a script, with what it shall print.
type step struct {
	where string // file:line
	args  []string
	code  int
	words []string // each the words of one line, in this order
	never []string
}

// readScript reads a script of command lines; its form is told at its beginning.
func readScript(t *testing.T, path string) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		where := fmt.Sprintf("%s:%d", filepath.Base(path), i+1)
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "$" {
			fields := strings.Fields(rest)
			if fields[0] != "stead" {
				t.Fatalf("%s: only stead is run", where)
			}
			steps = append(steps, step{where: where, args: fields[1:]})
			continue
		}
		if line == "" || mark == "#" {
			continue
		}
		if len(steps) == 0 {
			t.Fatalf("%s: no command before it", where)
		}
		s := &steps[len(steps)-1]
		switch mark {
		case "?":
			if s.code, err = strconv.Atoi(rest); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
		case "!":
			s.never = append(s.never, rest)
		default:
			s.words = append(s.words, line)
		}
	}
	return steps
}

// hasLine reports whether a line of text has the words in their order.
func hasLine(text, words string) bool {
	for line := range strings.Lines(text) {
		at, found := 0, true
		for _, w := range strings.Fields(words) {
			i := strings.Index(line[at:], w)
			if found = i >= 0; !found {
				break
			}
			at += i + len(w)
		}
		if found {
			return true
		}
	}
	return false
}

func TestCommandLinesAsPeopleTypeThem(t *testing.T) {
	scripts, err := filepath.Glob("testdata/cli/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			steps := readScript(t, path)
			l := newLab(t)
			l.startAll(l.toolArchive())
			if err := os.WriteFile(l.path("life.yaml"), []byte(lifeSet), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, s := range steps {
				l.check(s)
			}
		})
	}
}

// check runs a step in the lab's directory.
func (l *Lab) check(s step) {
	l.t.Helper()
	cmd := l.steadCommand(s.args...)
	cmd.Dir = l.Dir
	stop := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	out, err := cmd.CombinedOutput()
	stop.Stop()
	var wrong []string
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		l.t.Fatalf("%s: %v", s.where, err)
	}
	if code != s.code {
		wrong = append(wrong, fmt.Sprintf("exit code %d, want %d", code, s.code))
	}
	for _, words := range s.words {
		if !hasLine(string(out), words) {
			wrong = append(wrong, fmt.Sprintf("no line with %q", words))
		}
	}
	for _, words := range s.never {
		if hasLine(string(out), words) {
			wrong = append(wrong, fmt.Sprintf("a line with %q", words))
		}
	}
	if len(wrong) > 0 {
		l.t.Errorf("%s: stead %s: %s\n%s", s.where, strings.Join(s.args, " "), strings.Join(wrong, "; "), out)
	}
}
