package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// smallSet is two members for each of three hosts, which start at once.
var smallSet = strings.NewReplacer("replicas: 1", "replicas: 6\n  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {maxUnavailable: 1}}",
	"kept", "small").Replace(keptSet)

// volumeOf is a file in the volume of a member, on the host on which the member is.
func volumeOf(hosts []*Lab, name string) (host *Lab, file string) {
	m := hosts[0].mustMember(name)
	set, ordinal, _ := strings.Cut(name, "-")
	for _, h := range hosts {
		if h.nodeName() == m.Status.Node {
			return h, h.path("agent/volumes/default", set, "data-"+ordinal, "data", "mark")
		}
	}
	return nil, ""
}

// TestMembersAreSpreadOverANewHostAndLeaveOneThatIsDrained: real etcd under acknowledged writes, and a small set. A fourth host
// joins, members are spread over it, and a host is emptied with the volumes of its members.
func TestMembersAreSpreadOverANewHostAndLeaveOneThatIsDrained(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 4)
	l, last := hosts[0], hosts[3]
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts[:3])
	images := func(h *Lab) {
		l.stead("image", "load", etcdArchive, "--node", h.nodeName())
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	for _, h := range hosts[:3] {
		images(h)
	}
	l.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", patience)
	l.apply("small", smallSet, "--wait", "--timeout", patience)
	marks := []string{"etcd-0", "etcd-1", "etcd-2"}
	for i := range 6 {
		marks = append(marks, fmt.Sprint("small-", i))
	}
	for _, name := range marks {
		host, file := volumeOf(hosts, name)
		if host == nil {
			t.Fatalf("%s is on no host", name)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop := l.startLoad("--endpoints", etcdEndpoints)

	t.Log("a host joins, and gets members of the small set")
	last.startAgent()
	last.join = []string{"--join", api}
	l.eventually(time.Minute, "the host has joined", func() error { return l.steadSays(last.nodeName(), "get", "nodes") })
	images(last)
	says(t, l.stead("rebalance", "etcd", "--dry-run"), "nothing to move")
	l.eventually(time.Minute, "a rebalance is foretold", func() error { return l.steadSays("1 member moves (dry run)", "rebalance", "--dry-run") })
	if out := l.stead("get", "members", "-o", "wide"); strings.Contains(out, "->") {
		t.Errorf("a dry run moves members:\n%s", out)
	}
	says(t, l.stead("rebalance", "small", "--wait", "--timeout", patience), "is on node "+last.nodeName())
	says(t, l.stead("rebalance"), "nothing to move")
	arrived(t, hosts, marks)

	t.Log("a host is emptied for good")
	host, _ := volumeOf(hosts, "etcd-1")
	said := l.stead("drain", host.nodeName(), "--move", "--timeout", patience)
	says(t, said, "node "+host.nodeName()+" drained")
	l.stead("wait", "etcd", "--timeout", patience)
	l.stead("wait", "small", "--timeout", patience)
	for _, name := range marks {
		if on, _ := volumeOf(hosts, name); on == host {
			t.Errorf("%s is left on the drained host", name)
		}
		if pids := host.pidsOf(name); len(pids) > 0 {
			judge.Broken(t, "processes %v of %s run on the drained host", pids, name)
		}
	}
	arrived(t, hosts, marks)
	l.stead("uncordon", host.nodeName())
	stop()
}

// arrived: each member has its own volume, whose old copy is in its place on no host.
func arrived(t *testing.T, hosts []*Lab, names []string) {
	t.Helper()
	for _, name := range names {
		on, file := volumeOf(hosts, name)
		if got, err := os.ReadFile(file); err != nil || string(got) != name {
			judge.Broken(t, "the volume of %s on node %s holds %q, %v", name, on.nodeName(), got, err)
		}
		for _, h := range hosts {
			if h == on {
				continue
			}
			other := strings.Replace(file, on.Dir, h.Dir, 1)
			hosts[0].eventually(2*time.Minute, "no other copy is in place", func() error {
				if _, err := os.Stat(other); err == nil {
					return errors.New(other + " is there")
				}
				return nil
			})
		}
	}
}
