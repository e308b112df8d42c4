package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// guardSet is a set of guarded lives: they have no volume, so each host may have them.
const guardSet = `
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: guard}
spec:
  serviceName: guard
  replicas: 2
  podManagementPolicy: Parallel
  nodeLoss: {policy: Replace, after: 10s}
  selector: {matchLabels: {app: guard}}
  template:
    metadata: {labels: {app: guard}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: life
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, life, --lock=]
        env: [{name: VARIANT, value: v0}]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
`

// folk is a set of a matrix.
type folk struct {
	set     string
	members []string
	guarded bool         // its nodeLoss is Replace
	edit    func() error // begins a rolling update
	whole   func() error // what the set itself says of its members; nil: nothing
}

// guards applies the set of guarded lives.
func (m *matrix) guards() {
	m.Helper()
	g := &folk{set: "guard", members: []string{"guard-0", "guard-1"}, guarded: true}
	edits := 0
	g.edit = func() error {
		edits++
		return m.people.tryApply("guard", strings.Replace(guardSet, "value: v0", fmt.Sprint("value: v", edits), 1))
	}
	m.people.apply("guard", guardSet)
	m.sets = append(m.sets, g)
}

// database applies one of the examples, with a witness in each member.
func (m *matrix) database(set, image string) {
	m.Helper()
	m.use(&database{Lab: m.people, size: 3, set: set, image: image})
}

// use applies a database's variant.
func (m *matrix) use(d *database) {
	m.Helper()
	set := d.set
	f := &folk{set: set, edit: func() error { return m.people.tryApply(set, d.variant(d.edit(), d.image)) }}
	for i := range 3 {
		f.members = append(f.members, d.name(i))
	}
	if set == "etcd" {
		f.whole = m.wholeEtcd
	}
	if err := f.edit(); err != nil {
		m.Fatal(err)
	}
	m.sets = append(m.sets, f)
}

// wholeEtcd fails until the set's etcd lists its three members, each by its name.
func (m *matrix) wholeEtcd() error {
	o, err := m.people.member("etcd-0")
	if err != nil {
		return err
	}
	url := "http://" + o.Status.Address + ":2379/v3/cluster/member/list"
	out, err := m.hosts[0].inside(commandTime, "curl", "-sf", "-m", "5", "-X", "POST", "-d", "{}", url)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var list struct{ Members []struct{ Name string } }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return err
	}
	if len(list.Members) != 3 {
		return fmt.Errorf("etcd lists %s", out)
	}
	return nil
}

// tryApply is apply for times in which a server may refuse.
func (l *Lab) tryApply(name, manifest string) error {
	file := l.path(name + ".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return err
	}
	out, err := l.trySteadFor(time.Minute, "apply", "-f", file)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// setOf is the set of a member.
func setOf(member string) string { return member[:strings.LastIndexByte(member, '-')] }

// patient is how long a set may take to be whole again, on a machine that others use.
const patient = 6 * time.Minute

// settle waits until all hosts are connected, and every set is as its newest template
// says, with all of its members ready. Then no two lives may have been heard at once.
func (m *matrix) settle() {
	m.Helper()
	m.connected()
	for _, f := range m.sets {
		m.people.eventually(patient, f.set+" is whole", func() error {
			// A server or its store may be on its way back.
			out, err := m.people.trySteadFor(time.Minute, "rollout", "status", f.set, "--timeout", "50s")
			for _, name := range f.members {
				if o, looked := m.people.member(name); looked != nil || !o.Status.Ready {
					err = errors.Join(err, looked, fmt.Errorf("%s: %+v", name, o.Status))
				}
			}
			if err == nil && f.whole != nil {
				err = f.whole()
			}
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	m.judge()
}

// judge fails the test when two lives of one identity were heard at once.
func (m *matrix) judge() {
	m.Helper()
	var all []string
	for _, f := range m.sets {
		all = append(all, f.members...)
	}
	m.people.assertOneLife(m.heard, all...)
}

// tale is what a member is, whom nobody may concern.
func (m *matrix) tale(name string) tale {
	m.Helper()
	o := m.member(name)
	return tale{o.Status.Token, o.Status.Address, m.hosts[m.hostOf(name)].begun(name)}
}

// held are the tales of all members that are held through silence.
func (m *matrix) held() map[string]tale {
	m.Helper()
	all := map[string]tale{}
	for _, f := range m.sets {
		for _, name := range f.members {
			if !f.guarded {
				all[name] = m.tale(name)
			}
		}
	}
	return all
}

// assertHeld fails the test when one of the members is not what it was.
func (m *matrix) assertHeld(was map[string]tale) {
	m.Helper()
	for name, before := range was {
		if now := m.tale(name); now != before {
			judge.Broken(m, "%s was %+v and is %+v, though it is held", name, before, now)
		}
	}
}

// watchForTwo looks, all the time, whether the kernel has processes of one member on two
// hosts at once. Only pairs count of which the first was there before and after the
// second: a life that ended between two looks is no error.
func watchForTwo(t testing.TB, hosts []*Lab) {
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	look := func() (all []map[string][]string) {
		for _, h := range hosts {
			all = append(all, h.membersHere())
		}
		return all
	}
	go func() {
		defer close(done)
		told := map[string]bool{}
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			for _, two := range atOnce(look(), look()) {
				if !told[two] {
					told[two] = true
					judge.Broken(t, "two lives at %s: %s", time.Now().Format(time.TimeOnly), two)
				}
			}
		}
	}()
}

// atOnce finds members that were on two hosts at once, in two looks at all hosts in turn.
func atOnce(first, again []map[string][]string) (wrong []string) {
	for i, here := range first {
		for name, pids := range here {
			if !shares(pids, again[i][name]) {
				continue
			}
			for j := i + 1; j < len(first); j++ {
				if len(first[j][name]) > 0 {
					wrong = append(wrong, fmt.Sprintf("%s runs on host %d as %v and on host %d as %v", name, i, pids, j, first[j][name]))
				}
			}
		}
	}
	return wrong
}

func shares(a, b []string) bool {
	for _, one := range a {
		for _, other := range b {
			if one == other {
				return true
			}
		}
	}
	return false
}
