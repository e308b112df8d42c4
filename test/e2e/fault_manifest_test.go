package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// largeFile is a manifest of so many ConfigMaps of 15 lines and one set, in this
// order; insert replaces a line of the last ConfigMap.
func largeFile(maps int, insert string) string {
	var b strings.Builder
	for i := range maps {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-%d\ndata:\n", i)
		for line := range 8 {
			fmt.Fprintf(&b, "  key-%d: %q\n", line, strings.Repeat("é#: ", 20))
		}
		if i == maps-1 && insert != "" {
			b.WriteString(insert + "\n")
		} else {
			b.WriteString("  last: line\n")
		}
		b.WriteString("---\n")
	}
	return b.String() + strings.TrimPrefix(lifeSet, "\n")
}

// refuseFile applies a file that must be refused whole, with code 1.
func (l *Lab) refuseFile(text string) string {
	l.t.Helper()
	file := l.path("large.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	out, err := l.trySteadFor(time.Minute, "apply", "-f", file)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		l.t.Errorf("apply ends with %v, want code 1: %s", err, out)
	}
	if left := l.stead("get", "configmaps"); !strings.Contains(left, "no configmaps") {
		l.t.Errorf("half applied:\n%s", left)
	}
	if left := l.stead("get", "sets"); !strings.Contains(left, "no sets") {
		l.t.Errorf("half applied:\n%s", left)
	}
	return out
}

func TestLargeManifestsAreAppliedWholeOrRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	text := largeFile(100, "")
	if lines := strings.Count(text, "\n"); lines < 1400 {
		t.Fatalf("the file has %d lines", lines)
	}
	t.Log("a mistake far below is told with its line, in a map and in a set")
	bad := largeFile(100, "  wrong: [a, list]")
	line := strings.Count(bad[:strings.Index(bad, "  wrong:")], "\n") + 1
	bad = strings.Replace(bad, "image: stead.local", "imagee: stead.local", 1)
	below := strings.Count(bad[:strings.Index(bad, "imagee:")], "\n") + 1
	if line < 1000 || below <= line {
		t.Fatalf("the mistakes are in lines %d and %d", line, below)
	}
	says(t, l.refuseFile(bad),
		fmt.Sprintf("large.yaml:%d:10: data[wrong]: is a list, not text", line),
		fmt.Sprintf("large.yaml:%d:9: spec.template.spec.containers[0].imagee", below))

	t.Log("what is too large names its limit")
	says(t, l.refuseFile(largeFile(1, "  big: "+strings.Repeat("x", 1<<20))), "configmap default/map-0", "at most 1048576")
	says(t, l.refuseFile(largeFile(130, "")), "132 objects at once; at most 120")
	says(t, l.refuseFile(largeFile(1, "  big: "+strings.Repeat("x", 600<<10))+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\ndata: {big: "+strings.Repeat("y", 600<<10)+"}\n"), "1300000 bytes", "nothing was")

	t.Log("the good file is applied whole, and comes back as it was")
	l.apply("large", text)
	if got := strings.Count(l.stead("get", "configmaps"), "map-"); got != 100 {
		t.Errorf("%d ConfigMaps are there, want 100", got)
	}
	if out := l.stead("get", "sets"); !strings.Contains(out, "life") {
		t.Errorf("no set:\n%s", out)
	}
	if out := l.stead("get", "configmap", "map-99", "-o", "json"); !strings.Contains(out, strings.Repeat("é#: ", 20)) {
		t.Errorf("map-99 is %s", out)
	}
	big := strings.Repeat("z", 700_000)
	l.apply("big", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata:\n  big: "+big+"\n")
	if out := l.stead("get", "configmap", "big", "-o", "yaml"); !strings.Contains(out, big) {
		t.Errorf("the big value came back as %d bytes", len(out))
	}
}
