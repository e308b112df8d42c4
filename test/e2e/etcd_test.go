package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// etcdArchive is the image of examples/etcd/etcd.yaml, made by `make image`.
const etcdArchive = "../../.cache/images/etcd.tar"

const etcdEndpoints = "etcd-0.etcd.default.svc.cluster.local:2379,etcd-1.etcd.default.svc.cluster.local:2379,etcd-2.etcd.default.svc.cluster.local:2379"

// dig asks the lab's DNS and returns the short answer's lines, joined by spaces.
func (l *Lab) dig(name string) (string, error) {
	out, err := l.inside(time.Minute, "dig", "@"+gateway, "+short", "+time=5", "+tries=3", name)
	if err != nil {
		return "", fmt.Errorf("dig %s: %w: %s", name, err, out)
	}
	return strings.Join(strings.Fields(out), " "), nil
}

// waitDig waits until the lab's DNS answers that: a node is told after the server knows.
func (l *Lab) waitDig(name, want string) {
	l.t.Helper()
	l.eventually(time.Minute, "on "+l.Name+" DNS knows "+name, func() error {
		got, err := l.dig(name)
		if err == nil && got != want {
			err = fmt.Errorf("it answers %q, want %q", got, want)
		}
		return err
	})
}

// startLoad starts a writer of acknowledged keys; the returned function stops it
// and fails the test when an acknowledged key was lost.
func (l *Lab) startLoad(flags ...string) (stop func()) {
	l.t.Helper()
	p := l.start(fmt.Sprint("load-", len(l.all)), append([]string{toolBinary, "load", "--dns", gateway + ":53", "--for", "12h", "--pause", "2ms"}, flags...)...)
	return func() {
		l.t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			l.t.Fatalf("stop the load: %v\n%s", err, p.tail(2))
		}
		select {
		case <-p.done:
		case <-time.After(10 * time.Minute): // every key is read back, which takes its time
			l.t.Fatal("the load does not end")
		}
		l.judgeLoad(p.tail(2))
	}
}

// judgeLoad fails the test when the load's last words tell of a lost write, or are none.
func (l *Lab) judgeLoad(words string) {
	l.t.Helper()
	l.t.Logf("load: %s", strings.ReplaceAll(words, "\n", " ")) // test/soak tells lines
	var sum struct{ Acked, Errors, Lost, Unreadable int }
	for part := range strings.Lines(words) {
		_ = json.Unmarshal([]byte(part), &sum) // the other line is an error text
	}
	if sum.Lost != 0 || sum.Unreadable != 0 {
		judge.Broken(l.t, "acknowledged writes: %s", words)
	} else if sum.Acked == 0 {
		l.t.Errorf("the load wrote nothing: %s", words)
	}
}

// etcdMembers counts the members that etcd itself lists.
func (l *Lab) etcdMembers() (int, error) {
	first, err := l.member("etcd-0")
	if err != nil {
		return 0, err
	}
	url := "http://" + first.Status.Address + ":2379/v3/cluster/member/list"
	out, err := l.inside(time.Minute, "curl", "-s", "-m", "20", "-X", "POST", "-d", "{}", url)
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	var list struct {
		Members []struct {
			Name string `json:"name"`
		} `json:"members"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return len(list.Members), nil
}

func TestEtcdLosesNoAcknowledgedWriteThroughEveryFault(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if _, err := os.Stat(etcdArchive); err != nil {
		t.Fatalf("no etcd image: %v; run make image", err)
	}
	l.startAll(etcdArchive)
	l.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", patience)
	address := map[string]string{}
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		address[name] = l.mustMember(name).Status.Address
		l.waitDig(name+".etcd.default.svc.cluster.local", address[name])
	}
	stop := l.startLoad("--endpoints", etcdEndpoints)

	t.Log("a member is killed")
	was := l.mustMember("etcd-1")
	l.killMember("etcd-1")
	if now := l.waitReady("etcd-1", &was); now.Status.Address != address["etcd-1"] {
		t.Errorf("etcd-1 came back at %s, was %s", now.Status.Address, address["etcd-1"])
	}
	t.Log("the agent is killed")
	_ = l.agent.signal(syscall.SIGKILL)
	l.startAgent()
	t.Log("the server is killed")
	_ = l.server.signal(syscall.SIGKILL)
	l.startServer()
	t.Log("containerd is killed")
	_ = l.containerd.signal(syscall.SIGKILL)
	l.startContainerd()
	for name := range address {
		l.waitReady(name, nil)
	}
	for _, n := range []int{5, 3} {
		t.Logf("scale to %d", n)
		l.stead("scale", "etcd", "--replicas", fmt.Sprint(n), "--wait", "--timeout", patience)
		l.eventually(time.Minute, "etcd lists as many members", func() error {
			got, err := l.etcdMembers()
			if err == nil && got != n {
				err = fmt.Errorf("etcd lists %d members, want %d", got, n)
			}
			return err
		})
	}
	stop()
	for name, want := range address {
		if got := l.waitReady(name, nil); got.Status.Address != want {
			t.Errorf("%s: %+v, want it at %s", name, got.Status, want)
		}
	}
}
