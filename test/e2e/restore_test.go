package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/judge"
)

// movable is a set whose members have no volume, so that they may begin on any host.
const movable = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: life}
spec:
  replicas: 2
  selector: {matchLabels: {app: life}}
  template:
    metadata: {labels: {app: life}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: life
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, life, -lock, ""]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
`

// told are the commands of the blocks of a chapter of docs/OPERATIONS.md, block by block.
func told(t *testing.T, chapter string) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, found := strings.Cut(string(text), "\n### "+chapter+"\n")
	if !found {
		t.Fatalf("docs/OPERATIONS.md has no chapter %q", chapter)
	}
	text2, _, _ = strings.Cut(text2, "\n### ")
	for i, part := range strings.Split(text2, "```") {
		if i%2 == 1 {
			blocks = append(blocks, strings.Split(strings.TrimSpace(part), "\n"))
		}
	}
	return blocks
}

// follow does what a block says, as an operator does, on the lab's own directories.
func (l *Lab) follow(block []string) (said string) {
	l.t.Helper()
	places := strings.NewReplacer("/var/lib/stead/server", l.path("server"), "/var/backups", l.path("backups"))
	for _, line := range block {
		l.t.Log("$ " + line)
		switch words := strings.Fields(places.Replace(line)); {
		case line == "systemctl stop stead":
			l.stopUnits()
		case line == "systemctl start stead":
			l.startServer("--listen", api)
			l.startAgent()
		case words[0] == "stead":
			said = l.stead(words[1:]...)
			l.t.Log(said)
		default:
			l.run(words[0], words[1:]...)
		}
	}
	return said
}

func (l *Lab) restoring() (st records.RestoreState) {
	l.t.Helper()
	if err := json.Unmarshal([]byte(l.stead("restore", "--status", "-o", "json")), &st); err != nil {
		l.t.Fatal(err)
	}
	return st
}

// After the backup a host joins, a member moves there and another one is made. The store is
// put back as docs/OPERATIONS.md says, command by command, while that host is away.
func TestRestoringTheEmbeddedStoreAsTheDocsSay(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l, late := hosts[0], hosts[1]
	l.ownStore()
	steps := told(t, "The embedded store (`stead server`, `stead dev`)")
	if len(steps) != 3 {
		t.Fatalf("%d blocks; want how to save it, how to bring it back, and how to declare it", len(steps))
	}
	image := l.toolArchive()
	l.startServer("--listen", api)
	l.startAgent()
	l.stead("image", "load", image)
	heard := []string{l.startWitness(), late.startWitness()}
	l.apply("life", movable, "--wait", "--timeout", patience)
	if said := l.follow(steps[0]); !strings.Contains(said, "keys at revision") {
		t.Errorf("the backup: %s", said)
	}

	late.boot = late.path("boot-id")
	boots := func(id string) {
		if err := os.WriteFile(late.boot, []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boots("11111111-1111-4111-8111-111111111111")
	letIn(hosts)
	late.startAgent()
	late.join = []string{"--join", api}
	l.stead("image", "load", image, "--node", late.nodeName())
	l.stead("node", "cordon", l.nodeName())
	before := l.mustMember("life-1")
	l.stead("restart", "life-1")
	if now := l.waitReady("life-1", &before); now.Status.Node != late.nodeName() {
		t.Fatalf("life-1 is on %s", now.Status.Node)
	}
	l.stead("scale", "life", "--replicas", "3", "--wait", "--timeout", patience)
	stays, moved, made := fmt.Sprint(l.pidsOf("life-0")), fmt.Sprint(late.pidsOf("life-1")), fmt.Sprint(late.pidsOf("life-2"))
	runOn := func(when string) {
		t.Helper()
		for name, was := range map[string]string{fmt.Sprint(l.pidsOf("life-0")): stays, fmt.Sprint(late.pidsOf("life-1")): moved, fmt.Sprint(late.pidsOf("life-2")): made} {
			if name != was {
				judge.Broken(t, "%s: processes changed from %s to %s", when, was, name)
			}
		}
		if pids := l.pidsOf("life-1"); len(pids) > 0 {
			judge.Broken(t, "%s: life-1 runs on %s, too", when, l.Name)
		}
	}
	l.eventually(time.Minute, "the server has on disk that the host joined", func() error {
		if known, err := os.ReadFile(l.path("server/seen.json")); err != nil || !strings.Contains(string(known), late.nodeName()) {
			return fmt.Errorf("%v: %s", err, known)
		}
		return nil
	})

	end(t, late.agent)
	l.follow(steps[1])
	if st := l.restoring(); st.State != records.RestoreHeld {
		t.Fatalf("the store that went back is not held: %+v", st)
	}
	runOn("held")
	l.follow(steps[2])
	l.eventually(time.Minute, "the host that is there was heard, and the other is waited for", func() error {
		st := l.restoring()
		for _, n := range st.Nodes {
			if n.Name == spec.NodeName(l.nodeName()) != (n.State == records.NodeHeard) {
				return fmt.Errorf("%+v", st)
			}
		}
		if st.State != records.RestoreCounting || len(st.Nodes) != 2 {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	runOn("counting")

	late.startAgent()
	l.eventually(time.Minute, "the restore is complete", func() error {
		if st := l.restoring(); st.State != records.RestoreComplete {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	l.eventually(time.Minute, "life-1 waits, for its life is a stray", func() error {
		if out := l.stead("explain", "life"); !strings.Contains(out, "node "+late.nodeName()+" runs a life of it") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	runOn("complete")

	t.Log("the host of the strays is rebooted, as the table of OPERATIONS says of Stray")
	end(t, late.agent)
	late.purge()
	boots("22222222-2222-4222-8222-222222222222")
	late.startAgent()
	l.stead("image", "load", image, "--node", late.nodeName())
	l.stead("scale", "life", "--replicas", "3", "--wait", "--timeout", patience)
	l.assertOneLifeOnHosts(heard, "life-0", "life-1", "life-2")
}
