package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// TestAHostThatIsShutDownStopsItsMembersInOrder: as systemd does it, with server and agent in one process; a mere stop of the unit
// touches no member. After the boot all return, with their data.
func TestAHostThatIsShutDownStopsItsMembersInOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.boot = l.path("boot-id")
	write := func(path, text string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	systemd := func(state string) { // systemctl fails with each of these answers
		write(l.path("systemctl"), "#!/bin/sh\n[ \"$*\" = is-system-running ] && echo "+state+"\nexit 1\n", 0o755)
	}
	start := func() {
		before := l.sessionsIn("dev.log")
		l.agent = l.start("dev", append([]string{"env", "PATH=" + l.path() + ":" + os.Getenv("PATH"), steadBinary, "dev", "--root", l.Dir, "--socket", l.Socket,
			"--run-dir", l.path("run"), "--node", l.nodeName(), "--containerd", l.containerdSocket(), "--pressure-disk-percent", "0", "--boot-id", l.boot}, l.storeFlags...)...)
		l.eventually(time.Minute, "the node connects", func() error {
			if l.sessionsIn("dev.log") == before {
				return fmt.Errorf("no session")
			}
			return l.steadSays(" Ready ", "get", "nodes")
		})
	}
	write(l.boot, "11111111-1111-4111-8111-111111111111", 0o600)
	systemd("degraded")
	start()
	l.stead("image", "load", l.toolArchive())
	l.apply("net", repairSet, "--wait", "--timeout", patience)
	members := []string{"net-0", "net-1"}
	var was []member
	var pids [][]int
	for _, name := range members {
		was, pids = append(was, l.mustMember(name)), append(pids, l.pidsOf(name))
	}
	write(l.path("agent/volumes/default/net/data-1/data/vote"), "kept", 0o600)

	t.Log("the unit is stopped")
	end(t, l.agent)
	for i, name := range members {
		if now := l.pidsOf(name); !slices.Equal(now, pids[i]) {
			judge.Broken(t, "%s has processes %v, had %v", name, now, pids[i])
		}
	}
	start()

	t.Log("the host is shut down")
	systemd("stopping")
	end(t, l.agent)
	for _, name := range members {
		if now := l.pidsOf(name); len(now) > 0 {
			t.Errorf("processes %v of %s are left", now, name)
		}
	}
	write(l.boot, "22222222-2222-4222-8222-222222222222", 0o600)
	systemd("running")
	start()
	for i, name := range members {
		now := l.waitReady(name, &was[i])
		if now.Status.Address != was[i].Status.Address || now.Status.Token == was[i].Status.Token {
			t.Errorf("%s has %+v, had %+v", name, now.Status, was[i].Status)
		}
	}
	if text, err := os.ReadFile(l.path("agent/volumes/default/net/data-1/data/vote")); err != nil || string(text) != "kept" {
		judge.Broken(t, "the volume of net-1 holds %q, %v", text, err)
	}
	events := l.stead("get", "events")
	first, second := strings.Index(events, "net-1 stops"), strings.Index(events, "net-0 stops")
	if first < 0 || second < first || !strings.Contains(lineWith(events, "net-1 stops"), "NodeShutdown") {
		t.Errorf("events:\n%s", events)
	}
}
