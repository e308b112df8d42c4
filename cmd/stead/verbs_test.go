package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/cmd/stead/script"
)

func TestEveryVerbEndsWithItsCode(t *testing.T) {
	c := newCluster(t, nil)
	c.host.OnExec(func(_ context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
		if e.Command[0] == "/bin/false" {
			return 1, nil
		}
		return 0, nil
	})
	c.play("verbs.txt")
}

func TestWhoKnowsKubectlFindsTheWay(t *testing.T) { newCluster(t, nil).play("habits.txt") }

func TestNodeVerbs(t *testing.T)                { newCluster(t, nil).play("node.txt") }
func TestAHostIsDrained(t *testing.T)           { newCluster(t, nil).play("drain.txt") }
func TestASetIsOrphanedAndAdopted(t *testing.T) { newCluster(t, nil).play("orphan.txt") }

func TestSeveralObjectsAreDeletedAndNoVolume(t *testing.T) { newCluster(t, nil).play("delete.txt") }

func TestManifestsInDirectoriesByLabelsAndPruned(t *testing.T) {
	newCluster(t, nil).play("manifests.txt")
}

func TestAQuotaBoundsANamespace(t *testing.T) { newCluster(t, nil).play("quota.txt") }

// A difference restarts the members of which it changes what they run, and is shown where revisions are.
func TestAMemberThatDiffersIsUpdatedAlone(t *testing.T) { newCluster(t, nil).play("differences.txt") }

func TestAServiceIsRenamed(t *testing.T) { newCluster(t, nil).play("rename.txt") }

// TestNoVerbIsForgotten: each is in docs/CLI.md, and in a script as it is meant (or
// refused) and with a wrong use.
func TestNoVerbIsForgotten(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/CLI.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string][]int{}
	for _, path := range scripts {
		steps, err := script.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if cmd, _, err := newRoot(&cli{}).Find(s.Args); err == nil {
				codes[cmd.CommandPath()] = append(codes[cmd.CommandPath()], s.Code)
			}
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := cmd.CommandPath()
		shell := strings.HasPrefix(path, "stead completion ") // all alike
		if cmd.HasSubCommands() && !slices.Contains(acts, cmd.Name()) || shell {
			return
		}
		if !strings.Contains(string(page), "`"+path) {
			t.Errorf("%s: docs/CLI.md does not have it", path)
		}
		if !slices.Contains(codes[path], exitUsage) {
			t.Errorf("%s: no script uses it wrongly", path)
		}
		starts := slices.ContainsFunc(acts, func(name string) bool { return strings.HasSuffix(path, " "+name) })
		if !starts && !slices.Contains(codes[path], exitDone) && !slices.Contains(codes[path], exitRefused) {
			t.Errorf("%s: no script uses it", path)
		}
	}
	walk(newRoot(&cli{}))
}
