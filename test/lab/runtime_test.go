package lab

import (
	"path/filepath"
	"strings"
	"testing"
)

// programs are those that the tests of the runtime need on a host, which has no Go.
const programs = "/root/programs"

// TestTheRuntimeKeepsItsPromisesOnCGroup2: the tests of agent/runtime/containerdrt, on a host with systemd and cgroup v2
// alone, with runc and with crun; and what a start takes with each.
func TestTheRuntimeKeepsItsPromisesOnCGroup2(t *testing.T) {
	soakFor(t)
	h := newLab(t, 1)
	dir := filepath.Join(h.dir, "programs")
	for name, args := range map[string][]string{
		"rt.test":    {"test", "-c", "../../agent/runtime/containerdrt"},
		"box":        {"build", "../../agent/runtime/runtimetest/box"},
		"stead-node": {"build", "../../cmd/stead-node"},
	} {
		argv := append([]string{"CGO_ENABLED=0", "go", args[0], "-o", filepath.Join(dir, name)}, args[1:]...)
		if out, err := h.try(hanging, "env", argv...); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	h.ssh(1, "mkdir -p "+programs)
	h.lab("put", "1", filepath.Join(dir, "rt.test"), filepath.Join(dir, "box"), filepath.Join(dir, "stead-node"), programs)
	run := func(args string) string {
		out, err := h.try(2*hanging, script, "ssh", "1", "cd /root && STEAD_ROOT_TESTS=1 STEAD_PROGRAMS="+programs+" "+programs+"/rt.test "+args)
		if err != nil {
			t.Fatalf("rt.test %s: %v\n%s", args, err, out)
		}
		return out
	}
	h.act("promises with runc and with crun", func() {
		out := run("-test.v -test.timeout 15m -test.run '^TestRuntimePromises'")
		for _, test := range []string{"TestRuntimePromises", "TestRuntimePromisesWithCRun"} {
			if !strings.Contains(out, "\n--- PASS: "+test+" ") {
				t.Errorf("%s did not pass:\n%s", test, out)
			}
		}
		t.Logf("%d tests passed", strings.Count(out, "--- PASS"))
	})
	h.act("starts", func() {
		t.Logf("%s", run("-test.timeout 15m -test.run '^$' -test.bench '^BenchmarkStart$' -test.benchtime 20x"))
	})
}
