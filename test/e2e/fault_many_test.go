package e2e

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manySet runs members that do nothing, all at once; MANY, STEP are replaced.
const manySet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: many}
spec:
  replicas: MANY
  podManagementPolicy: Parallel
  updateStrategy: {rollingUpdate: {maxUnavailable: 20%}}
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}, annotations: {step: "STEP"}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, command, wait]
`

// manyMembers is how many are run: enough to show what grows with their number.
// STEAD_MANY=200 is the full form, which make soak runs.
func manyMembers(t *testing.T) int {
	t.Helper()
	n := 60
	if text := os.Getenv("STEAD_MANY"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestManyMembersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	n := manyMembers(t)
	of := func(step string) string {
		return strings.NewReplacer("MANY", strconv.Itoa(n), "STEP", step).Replace(manySet)
	}
	patient := func(args ...string) {
		if out, err := l.trySteadFor(11*time.Minute, args...); err != nil {
			t.Fatalf("stead %v: %v\n%s\n%s", args, err, out, l.logs())
		}
	}
	apply := func(step string) {
		l.apply("many", of(step))
		patient("rollout", "status", "many", "--timeout", "10m")
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"created", func() { apply("one") }},
		{"all there", func() {
			if there := l.remains("many"); strings.Count(there, "\n") < 8*n {
				t.Errorf("of %d members it sees only:\n%s", n, there)
			}
		}},
		{"updated", func() { apply("two") }},
		{"deleted", func() { patient("delete", "set", "many", "--wait", "--timeout", "10m") }},
	} {
		begun := time.Now()
		step.do()
		t.Logf("%d members %s in %s; cpu of agent %s, server %s, containerd %s", n, step.what, time.Since(begun).Round(100*time.Millisecond),
			l.agent.cpu(), l.server.cpu(), l.containerd.cpu())
	}
	l.eventually(time.Minute, "nothing is left of them", func() error {
		if left := l.remains("many"); left != "" {
			return errors.New(left)
		}
		return nil
	})
}

// remains lists what still stands on the host of the members of a set. The watchdog is
// the node's.
func (l *Lab) remains(set string) string {
	l.t.Helper()
	var left []string
	note := func(what, text, part string) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) {
				left = append(left, what+" "+strings.TrimSpace(line))
			}
		}
	}
	note("link", l.run("ip", "-n", l.Name, "-o", "link"), ": st")
	note("route", l.run("ip", "-n", l.Name, "route"), " dev st")
	for _, kind := range []string{"tasks", "containers", "snapshots"} {
		note(kind, l.ctr(kind, "ls"), "default."+set+"-")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		l.t.Fatal(err)
	}
	note("mount", string(mounts), l.Dir+"/run/ns/default/"+set+"-")
	note("mount", string(mounts), "default."+set+"-")
	note("files", l.run("find", l.path("run"), "-name", set+"-*"), "/"+set+"-")
	note("cgroup", l.run("find", "/sys/fs/cgroup", "-maxdepth", "3", "-name", "default."+set+"-*"), "-"+l.nodeName()+"/")
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		cmdline, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if text := strings.ReplaceAll(string(cmdline), "\x00", " "); err == nil && strings.Contains(text, l.Dir+"/") &&
			(strings.Contains(text, "-shim-") || strings.Contains(text, "stead-node") && !strings.Contains(text, "stead-node watchdog ")) {
			left = append(left, "process "+e.Name()+" "+text)
		}
	}
	return strings.Join(left, "\n")
}

// cpu is the processor time that the program has used.
func (p *process) cpu() string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return err.Error()
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var ticks int
	for _, i := range []int{11, 12} {
		n, _ := strconv.Atoi(f[i]) // shown as 0
		ticks += n
	}
	return (time.Duration(ticks) * 10 * time.Millisecond).String()
}
