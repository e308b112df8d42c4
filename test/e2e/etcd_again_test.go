package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// in is etcdctl in a member, about that member alone.
func (l *Lab) in(name string, args ...string) (string, error) {
	argv := append([]string{"exec", name, "--", "env", "ETCDCTL_API=3", "etcdctl", "--dial-timeout", "5s", "--command-timeout", "10s"}, args...)
	return l.trySteadFor(time.Minute, argv...)
}

// waitFor waits until etcdctl in a member says what is wanted.
func (l *Lab) waitFor(what, name string, ok func(out string) bool, args ...string) {
	l.t.Helper()
	l.eventually(2*time.Minute, what, func() error {
		out, err := l.in(name, args...)
		if err == nil && !ok(out) {
			err = fmt.Errorf("%s says %q", name, out)
		}
		return err
	})
}

// etcdSet is examples/etcd/etcd.yaml with changes: old and new text in turn.
func etcdSet(t *testing.T, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/etcd/etcd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(changes, 2) {
		if !strings.Contains(string(text), pair[0]) {
			t.Fatalf("examples/etcd/etcd.yaml has no %q", pair[0])
		}
	}
	return strings.NewReplacer(changes...).Replace(string(text))
}

// A member lags, and the other two acknowledge keys. The set is deleted, the disk of one
// of the two is given up, and the set is applied again, the other of the two slow to
// start. A new cluster of the empty disk and the lagging one would lose the keys. When all
// disks are given up a new cluster is formed, also by ordinals that begin at 1.
func TestEtcdLosesNothingWhenItsSetIsMadeAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if _, err := os.Stat(etcdArchive); err != nil {
		t.Fatalf("no etcd image: %v; run make image", err)
	}
	l.startAll(etcdArchive)
	wait := []string{"--wait", "--timeout", patience}
	l.apply("etcd", etcdSet(t), wait...)

	t.Log("etcd-1 stands still, and the others acknowledge keys")
	for _, pid := range l.pidsOf("etcd-1") {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		l.waitFor("a key is acknowledged", "etcd-0", func(out string) bool { return strings.Contains(out, "OK") }, "put", fmt.Sprintf("key-%02d", i), "kept")
	}
	l.stead(append([]string{"delete", "set", "etcd"}, wait...)...)
	if out := l.stead(append([]string{"volume", "reclaim", "data-etcd-2", "--yes"}, wait...)...); !strings.Contains(out, "warning: data-etcd-0, data-etcd-1 of the deleted set etcd stay") {
		t.Errorf("reclaim says %q", out)
	}

	t.Log("etcd-2 comes back with an empty disk, etcd-0 late")
	const first = "    set -euo pipefail\n    . \"${LIB"
	out := l.apply("etcd", etcdSet(t, first, "    [ \"$STEAD_ORDINAL\" != 0 ] || sleep 15\n"+first), wait...)
	if !strings.Contains(out, "continues with the data of the earlier set") {
		t.Errorf("apply says %q", out)
	}
	if got, err := os.ReadFile(l.path("run/members/default/etcd-2/bootstrapped")); err != nil || string(got) != "1\n" {
		t.Errorf("etcd-2 reads bootstrapped %q, error %v", got, err)
	}
	if log := l.stead("logs", "etcd-2"); !strings.Contains(log, "joining as etcd-2") || strings.Contains(log, "first start") {
		judge.Broken(t, "etcd-2 did not join: %s", log)
	}
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		if out, err := l.in(name, "get", "--prefix", "key-", "--print-value-only"); err != nil || strings.Count(out, "kept") != 20 {
			judge.Broken(t, "%s has not the 20 acknowledged keys: %q, %v", name, out, err)
		}
	}
	l.waitFor("etcd counts three members", "etcd-0", func(out string) bool { return strings.Count(out, "started") == 3 }, "member", "list")

	t.Log("all disks are given up, and the next ones begin at 1")
	l.stead(append([]string{"delete", "set", "etcd"}, wait...)...)
	for i := range 3 {
		l.stead(append([]string{"volume", "reclaim", fmt.Sprint("data-etcd-", i), "--yes"}, wait...)...)
	}
	l.apply("etcd", etcdSet(t, "  replicas: 3\n", "  replicas: 3\n  ordinals: {start: 1}\n"), wait...)
	l.waitFor("etcd counts three members", "etcd-3", func(out string) bool {
		return strings.Count(out, "started") == 3 && !strings.Contains(out, "etcd-0")
	}, "member", "list")
	if out, err := l.in("etcd-3", "get", "--prefix", "key-"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("the new cluster has keys of the old one: %q, %v", out, err)
	}
}
