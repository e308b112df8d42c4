package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServersAreKilledReplacedUpgradedAndRestoredUnderWrites: three servers with a store of their own and four hosts, of the program of an
// earlier commit, with etcd under acknowledged writes, and DNS asked on each host, all the time. They are upgraded; each server is killed,
// the disk of one is lost and it is replaced, the quorum is lost and regained; all go back by one release and are upgraded for good; and three
// new servers are made of last night's backup. No member is touched, no question lost; an upgrade writes no record. In a soak, servers
// and agents change their program by chance until its time is over.
func TestServersAreKilledReplacedUpgradedAndRestoredUnderWrites(t *testing.T) {
	length, chance := soakFor(t)
	if length == 0 {
		t.Parallel()
		chance = seeded(t)
	}
	r := newRolling(t, chance)
	m := r.matrix
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "5ms")
	var asking []*asker
	for _, h := range m.hosts {
		h.client = m.people.client
		asking = append(asking, h.startAsker("etcd", m.sets[0].members...))
	}
	was := m.begunAll()
	act := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		m.connected()
		m.assertHeld(r.was)
		m.stillAll(was)
		m.judge()
		t.Logf("%s: %v", what, time.Since(began).Round(100*time.Millisecond))
	}

	servers, agents := []int{0, 1, 2}, []int{0, 1, 2, 3}
	r.servers("an upgrade of the servers first", steadBinary, servers...)
	r.agents("then of the agents", steadBinary, agents...)
	act("each server is killed, the leader last", func() { m.killEachServer() })
	act("the disk of a server is lost, and it is replaced", func() { m.loseServerDisk() })
	act("the quorum is lost and regained", m.quorumIsToldOf)
	act("last night's backup", m.lastNightsBackup)

	r.store, _ = m.control[0].dump()
	r.agents("the way back of the agents first", r.before, agents...)
	r.servers("then of the servers", r.before, servers...)
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		stead := []string{r.before, steadBinary}[chance.IntN(2)]
		if chance.IntN(2) == 0 {
			r.servers("a server by chance", stead, m.anyControl())
		} else {
			r.agents("an agent by chance", stead, m.anyHost())
		}
	}
	r.agents("an upgrade for good, of the agents", steadBinary, agents...)
	r.servers("and of the servers", steadBinary, servers...)
	act("three new servers of last night's backup", m.newServersFromBackup)
	for _, a := range asking {
		a.saw()
	}
	stop()

	t.Log("a member begins its next life, with the logger of the program under test")
	host, before := m.hosts[m.hostOf("all-1")], m.member("all-1")
	loggers := func() []int { return host.living(r.ours+"-", "stead-node\x00logger\x00", host.path("agent", "bin")) }
	if now := loggers(); len(now) > 0 {
		t.Errorf("loggers of lives that began before are %v", now)
	}
	m.people.stead("restart", "all-1")
	m.people.waitReady("all-1", &before)
	if len(loggers()) == 0 {
		t.Error("the life has no logger of the program under test")
	}
	m.judge()
}

// newRolling starts three servers and four hosts of an earlier commit, with etcd and a little of all.
func newRolling(t *testing.T, chance *rand.Rand) *rolling {
	t.Helper()
	before := previousStead(t, "--own-store")
	began := time.Now()
	// A session lasts as it does by default: the agent of a busy host may take longer than five seconds to start.
	m := newOwnServersAs(t, 4, chance, before, 0, "15s")
	for i := 1; i < controls; i++ {
		m.joinOwn(i, m.control[0].stead("token", "create", "--for-server", serverName(i)))
	}
	m.vote()
	m.people.stead("node", "cordon", m.hosts[3].nodeName()) // for what is drained later
	m.use(&database{Lab: m.people, size: 3, set: "etcd", image: "stead.local/etcd:3.4.23", file: previousEtcd})
	m.people.stead("apply", "-f", previousManifest, "--wait", "--timeout", patience)
	m.sets = append(m.sets, &folk{set: "all", members: previousMembers[:2]}, &folk{set: "guarded", members: previousMembers[2:]})
	m.people.waitReady("etcd-2", nil)
	m.people.stead("node", "uncordon", m.hosts[3].nodeName())
	m.settle()
	t.Logf("all is up after %v", time.Since(began).Round(100*time.Millisecond))
	r := &rolling{matrix: m, before: before, ours: m.people.ownVersion(), was: m.held()}
	r.store, _ = m.control[0].dump()
	return r
}

// follower is a command of a person that goes on while servers come and go.
type follower struct {
	what string
	cmd  *exec.Cmd
	said *output
	ends bool // by itself, when what it waits for is there
}

// slowSets are one with a member that is ready when a file is in its volume, and one with a member that its budget keeps from being
// stopped; each on a host.
func slowSets(slow, stays string) (late, kept string) {
	late = strings.Replace(dataSet("late", 1), "tcpSocket: {port: probe}, periodSeconds: 1",
		"exec: {command: [/box, command, cat, /data/ready]}, periodSeconds: 1, timeoutSeconds: 20", 1)
	kept = strings.NewReplacer("name: life}", "name: kept}", "app: life}", "app: kept}", "replicas: 2", "replicas: 1").Replace(movable)
	on := func(host, text string) string {
		return strings.Replace(text, "      terminationGracePeriodSeconds: 5\n",
			"      terminationGracePeriodSeconds: 5\n      nodeSelector: {kubernetes.io/hostname: "+host+"}\n", 1)
	}
	return on(slow, late), on(stays, kept) + `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: kept}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: kept}}}
`
}

// quorumIsToldOf loses most servers while people follow and wait: each command says so in plain words, and goes on when they are back.
func (m *matrix) quorumIsToldOf() {
	m.Helper()
	slow, drained := m.hosts[0], m.hosts[3]
	late, kept := slowSets(slow.nodeName(), drained.nodeName())
	file := m.people.path("late.yaml")
	if err := os.WriteFile(file, []byte(late), 0o600); err != nil {
		m.Fatal(err)
	}
	m.people.apply("kept", kept, "--wait", "--timeout", patience)
	var all []*follower
	follow := func(ends bool, pattern string, words ...string) {
		m.Helper()
		cmd, said, _ := m.people.background(pattern, words...)
		m.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
		all = append(all, &follower{strings.Join(words, " "), cmd, said, ends})
	}
	follow(true, "late-0", "apply", "-f", file, "--wait", "--timeout", patience)
	follow(false, "life of default/all-0 with token", "logs", "-f", "all-0")
	follow(false, "kept-0", "get", "members", "-w")
	follow(false, "kept-0", "get", "events", "-w")
	follow(true, "to be drained", "drain", drained.nodeName(), "--timeout", patience)
	say := func(words string) {
		m.Helper()
		for _, f := range all {
			m.people.eventually(time.Minute, f.what+" says "+words, func() error {
				if said := f.said.String(); !strings.Contains(said, words) {
					return fmt.Errorf("it says %s", said)
				}
				return nil
			})
		}
	}
	m.loseQuorumWhile(func() { say("stead: the store has no majority: 1 of its 3 servers can be reached") })
	say("stead: the store can be reached again; this continues")

	if err := os.WriteFile(slow.path("agent/volumes/default/late/data-0/data/ready"), nil, 0o600); err != nil {
		m.Fatal(err)
	}
	m.people.stead("delete", "pdb", "kept")
	for _, f := range all {
		if !f.ends {
			m.people.eventually(time.Minute, f.what+" goes on", func() error {
				_, since, _ := strings.Cut(f.said.String(), "this continues")
				if f.cmd.Args[len(f.cmd.Args)-1] == "-w" && !strings.Contains(since, "kept-0") {
					return fmt.Errorf("it says %s", f.said)
				}
				return nil
			})
			if err := f.cmd.Process.Signal(syscall.SIGINT); err != nil {
				m.Error(err)
			}
		}
		if err := f.cmd.Wait(); err != nil {
			m.Errorf("%s: %v\n%s", f.what, err, f.said)
		}
		m.Logf("$ stead %s\n%s", f.what, f.said)
	}
	m.people.stead("delete", "sts", "late", "kept", "--wait", "--timeout", patience)
	m.people.stead("uncordon", drained.nodeName())
}
