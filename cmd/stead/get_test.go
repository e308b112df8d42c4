package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryKindHasItsTables(t *testing.T) { newCluster(t, nil).play("get.txt") }

// TestAWatchContinuesUntilCtrlC: the present objects, then changes, then a clean end.
func TestAWatchContinuesUntilCtrlC(t *testing.T) {
	c := newCluster(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	var out lines
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--server", "unix://" + c.socket, "get", "sets", "-w", "-A"}, &out, &out)
	}()
	c.until("the watch began", func() bool { return strings.Contains(out.String(), "NAMESPACE") })
	if code, said := c.stead("apply", "-f", "testdata/db.yaml", "--wait"); code != exitDone {
		t.Fatal(said)
	}
	c.until("the set is shown as available", func() bool { return strings.Contains(out.String(), "3/3") })
	interrupt()
	if got := <-code; got != exitDone || strings.Count(out.String(), "NAMESPACE") != 1 {
		t.Errorf("exit code %d\n%s", got, &out)
	}
}

// TestAWatchShowsEachEventOnce: also where those of two sets differ by the set alone, and more happens meanwhile.
func TestAWatchShowsEachEventOnce(t *testing.T) {
	c := newCluster(t, nil)
	manifest, err := os.ReadFile("testdata/db.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply := func(name, template string, more ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), name)
		text := strings.NewReplacer("name: db", "name: "+name, "    spec:\n", "    spec:\n"+template).Replace(string(manifest))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, said := c.stead(append([]string{"apply", "-f", file}, more...)...); code != exitDone {
			t.Fatal(said)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var out lines
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--server", "unix://" + c.socket, "get", "events", "-w", "-A"}, &out, &out)
	}()
	for _, name := range []string{"xa", "xb"} {
		apply(name, "      nodeSelector: {disk: none}\n")
		c.until("its member waits", func() bool { return strings.Contains(out.String(), " "+name+"-0 ") })
	}
	apply("db", "", "--wait")
	c.until("the other set's events", func() bool { return strings.Contains(out.String(), " db-2 ") })
	interrupt()
	<-code
	seen := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 2 {
			what := strings.Join(slices.Delete(fields, 1, 2), " ") // without the age
			if seen[what] {
				t.Errorf("shown twice: %s", what)
			}
			seen[what] = true
		}
	}
}

func TestDiffAndDryRunSayWhatApplyWouldDo(t *testing.T) { newCluster(t, nil).play("diff.txt") }

func TestDescribeAndHistoryAnswerTheOperator(t *testing.T) { newCluster(t, nil).play("describe.txt") }
