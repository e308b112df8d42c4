package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/test/judge"
)

// What docs/OPERATIONS.md says under "Back up and restore", step by step.

// leaveMark writes a file into a member's volume, as a database writes its data.
func (l *Lab) leaveMark(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(l.marked(name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *Lab) marked(name string) string {
	ordinal := name[strings.LastIndexByte(name, '-'):]
	return l.path("agent/volumes/default/life/data"+ordinal, "data/marked")
}

// wantMarks fails the test unless each member's volume holds its text.
func (l *Lab) wantMarks(want map[string]string) {
	l.t.Helper()
	for name, text := range want {
		if got, err := os.ReadFile(l.marked(name)); err != nil || string(got) != text {
			judge.Broken(l.t, "the volume of %s holds %q, %v; want %q", name, got, err, text)
		}
	}
}

// endAll stops Stead and then ends all members: `stead agent purge`.
func (l *Lab) endAll() {
	l.t.Helper()
	l.stopUnits()
	l.purge()
	for _, name := range []string{"life-0", "life-1", "life-2"} {
		if pids := l.pidsOf(name); len(pids) > 0 {
			l.t.Fatalf("processes of %s after a purge: %v", name, pids)
		}
	}
}

// addresses are those of the three members, once they are ready.
func (l *Lab) addresses() (all []string) {
	l.t.Helper()
	for _, name := range []string{"life-0", "life-1", "life-2"} {
		all = append(all, l.waitReady(name, nil).Status.Address)
	}
	return all
}

func TestACopyOfTheWholeDirectoryIsABackup(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ownStore()
	image := l.toolArchive()
	l.startAll(image)
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	addresses := l.addresses()
	want := map[string]string{"life-0": "a", "life-1": "b", "life-2": "c"}
	for name, text := range want {
		l.leaveMark(name, text)
	}

	t.Log("everything is ended and copied")
	l.endAll()
	l.run("mkdir", l.path("copy"))
	l.run("cp", "-a", l.path("server"), l.path("agent"), l.path("copy"))

	t.Log("it goes on where it was")
	l.startAll(image)
	if got := l.addresses(); !slices.Equal(got, addresses) {
		t.Errorf("addresses are %v, were %v", got, addresses)
	}
	l.wantMarks(want)
	l.leaveMark("life-0", "later")
	l.stead("restart", "life-1")
	l.stead("scale", "life", "--replicas", "4", "--wait", "--timeout", patience)

	t.Log("of the store's part of the copy alone its node notices that it went back; it is held, and nothing is ended")
	pids := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-3"))
	l.stopUnits()
	l.run("mv", l.path("server"), l.path("server.new"))
	l.run("cp", "-a", l.path("copy/server"), l.path("server"))
	l.startServer()
	l.startAgent()
	if st := l.restoring(); st.State != records.RestoreHeld || st.By != "node "+l.nodeName() {
		t.Errorf("the store is not held by its node: %+v", st)
	}
	if now := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-3")); now != pids {
		judge.Broken(t, "processes changed from %s to %s", pids, now)
	}

	t.Log("the whole copy is what it was")
	l.endAll()
	l.assertOneLife(heard, "life-0", "life-1", "life-2", "life-3")
	// Tokens of the copy come again, which is the price of it: heard anew.
	if err := os.Truncate(heard, 0); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"server", "agent"} {
		if err := os.RemoveAll(l.path(dir)); err != nil {
			t.Fatal(err)
		}
		l.run("cp", "-a", l.path("copy", dir), l.path(dir))
	}
	l.startAll(image)
	if got := l.addresses(); !slices.Equal(got, addresses) {
		t.Errorf("addresses are %v, were %v", got, addresses)
	}
	l.wantMarks(want)
	if out := l.stead("get", "members"); strings.Contains(out, "life-3") {
		t.Errorf("a member of later is there:\n%s", out)
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}

func TestDataOutlivesALostStore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ownStore()
	image := l.toolArchive()
	l.startAll(image)
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	want := map[string]string{"life-0": "a", "life-1": "b", "life-2": "c"}
	for name, text := range want {
		l.leaveMark(name, text)
	}

	t.Log("the store is lost: members run on, and their node serves no other cluster")
	pids := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("life-2"))
	l.stopUnits()
	if err := os.RemoveAll(l.path("server")); err != nil {
		t.Fatal(err)
	}
	l.startServer()
	flags := append([]string{steadBinary, "agent", "--server", "unix://" + l.Socket}, l.agentFlags()...)
	l.agent = l.start("agent.refused", flags...)
	l.eventually(time.Minute, "the agent says why it has no session", func() error {
		if log := l.agent.said(); !strings.Contains(log, "belongs to cluster") && !strings.Contains(log, "belongs to another cluster") {
			return fmt.Errorf("%s", log)
		}
		return nil
	})
	if now := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("life-2")); now != pids {
		judge.Broken(t, "processes changed from %s to %s", pids, now)
	}

	t.Log("a new cluster gets the data")
	l.endAll()
	l.run("mv", l.path("agent"), l.path("agent.old"))
	l.startAll(image)
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	l.stead("scale", "life", "--replicas", "0", "--wait", "--timeout", patience)
	for ordinal := range 3 {
		volume := filepath.Join("volumes/default/life", fmt.Sprint("data-", ordinal), "data")
		l.run("rm", "-rf", l.path("agent", volume))
		l.run("cp", "-a", l.path("agent.old", volume), l.path("agent", volume))
	}
	l.stead("scale", "life", "--replicas", "3", "--wait", "--timeout", patience)
	l.addresses()
	l.wantMarks(want)
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}
