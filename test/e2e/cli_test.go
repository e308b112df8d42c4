package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/cmd/stead/script"
)

func TestCommandLinesAsPeopleTypeThem(t *testing.T) {
	scripts, err := filepath.Glob("testdata/cli/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			steps, err := script.Read(path)
			if err != nil {
				t.Fatal(err)
			}
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
func (l *Lab) check(s script.Step) {
	l.t.Helper()
	cmd := l.steadCommand(s.Args...)
	cmd.Dir = l.Dir
	stop := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	out, err := cmd.CombinedOutput()
	stop.Stop()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		l.t.Fatalf("%s: %v", s.Where, err)
	}
	if wrong := s.Judge(code, string(out)); wrong != "" {
		l.t.Error(wrong)
	}
}
