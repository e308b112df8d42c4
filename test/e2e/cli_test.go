package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/cmd/stead/script"
)

func TestCommandLinesAsPeopleTypeThem(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/cli/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			steps, err := script.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			l := newLab(t)
			l.ownStore()
			l.startAll(l.toolArchive())
			for file, manifest := range map[string]string{
				"life.yaml": lifeSet, "life-wrong.yaml": strings.Replace(lifeSet, "tool:1", "tool:9", 1),
			} {
				if err := os.WriteFile(l.path(file), []byte(manifest), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range steps {
				if wrong := s.Run(l.typed, 2*time.Minute); wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
}

// typed runs a command line in the lab's directory and returns its exit code and all
// that it printed.
func (l *Lab) typed(args ...string) (int, string) {
	l.t.Helper()
	cmd := l.steadCommand(args...)
	cmd.Dir = l.Dir
	stop := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	out, err := cmd.CombinedOutput()
	stop.Stop()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out)
	} else if err != nil {
		l.t.Fatalf("stead %s: %v", strings.Join(args, " "), err)
	}
	return 0, string(out)
}
