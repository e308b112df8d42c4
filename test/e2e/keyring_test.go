package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTheKeyOfSecretsIsRotated: three servers with their own store, three hosts, etcd under acknowledged writes. A server is
// away when the rotation begins, the one that leads is killed while records are sealed again, and each is started
// again when the old key is gone.
func TestTheKeyOfSecretsIsRotated(t *testing.T) {
	t.Parallel()
	m := newOwnServers(t, 3, seeded(t))
	m.growServers()
	m.rotateKeys()
}

// TestTheKeyOfSecretsIsRotatedWithAnExternalEtcd: the same, with three servers on an etcd of three members. There a server that is away and
// has never said which keys it has is not waited for in the first rotation; it gets the new key when it returns.
func TestTheKeyOfSecretsIsRotatedWithAnExternalEtcd(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, 3, seeded(t), etcdArchive)
	m.secrets("created")
	m.kill(m.control[2].server)
	m.writes()
	m.people.stead("keyring", "rotate")
	before := ""
	m.people.eventually(time.Minute, "another key seals", func() error {
		before = m.keyThat("opens")
		if before == "" {
			return errors.New("the key of before seals still")
		}
		return nil
	})
	m.startAgain(2)
	m.rotated(2)
	m.people.stead("keyring", "remove", before, "--yes")
	m.rotated(1)
	m.rotateKeys()
}

func (m *matrix) rotateKeys() {
	m.database("etcd", "stead.local/etcd:3.4.23")
	m.settle()
	m.secrets("configured", "created", "unchanged")
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1")
	was, lives := m.held(), m.begunAll()
	old := m.secretKey(0)

	m.kill(m.control[2].server)
	m.writes()
	m.people.stead("keyring", "rotate")
	m.people.eventually(time.Minute, "the rotation says that it waits for s2", func() error {
		out, err := m.people.trySteadFor(commandTime, "status")
		if err != nil || !strings.Contains(out, " waits for s2: start them") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	if out, _ := m.people.trySteadFor(commandTime, "keyring", "remove", m.keyThat("seals"), "--yes"); !strings.Contains(out, "is the key that seals") {
		m.Errorf("the key that seals: %s", out)
	}
	before := m.keyThat("seals")
	m.startAgain(2)
	m.kill(m.control[0].server)
	m.startAgain(0)
	m.rotated(2)
	if m.keyThat("seals") == before || m.keyThat("opens") != before {
		m.Errorf("%s sealed before", before)
	}
	m.secrets("unchanged", "unchanged") // each opens, and has what it had

	m.people.stead("keyring", "remove", before, "--yes")
	m.rotated(1)
	for i := range controls {
		if now := m.secretKey(i); strings.Contains(now, old) || len(now) != len(old) {
			m.Errorf("%s has a key of %d bytes, or the removed one", serverName(i), len(now))
		}
	}
	m.killEachServer()
	m.secrets("unchanged", "unchanged")
	m.replaceLost(1)
	m.secrets("unchanged", "unchanged")
	m.people.stead("keyring", "rotate")
	m.rotated(2)
	m.connected()
	m.assertHeld(was)
	m.stillAll(lives)
	m.judge()
	stop()
}

// external: the servers' store is an etcd of its own.
func (m *matrix) external() bool { return m.control[0].store != nil }

// startAgain starts a server, and waits until all can do their part.
func (m *matrix) startAgain(i int) {
	m.Helper()
	if m.external() {
		m.startServer(i)
		m.writes()
		return
	}
	m.startOwn(i)
	m.quorate()
}

// secrets applies Secrets, which must turn out so: of a Secret that does not open nobody knows that it is unchanged.
func (m *matrix) secrets(outcomes ...string) {
	m.Helper()
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s%d}\nstringData: {password: of-s%d}\n", i, i)
	}
	m.people.eventually(time.Minute, "Secrets are applied", func() error {
		file := m.people.path("secrets.yaml")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			return err
		}
		out, err := m.people.trySteadFor(commandTime, "apply", "-f", file)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); !slices.Contains(outcomes, words[len(words)-1]) {
				m.Errorf("apply says %s", line)
			}
		}
		return nil
	})
}

// secretKey is the file of a server.
func (m *matrix) secretKey(i int) string {
	m.Helper()
	b, err := os.ReadFile(m.control[i].path("server", "secret.key"))
	if err != nil {
		m.Fatal(err)
	}
	return string(b)
}

// keyThat is the key with this use; "": none.
func (m *matrix) keyThat(use string) string {
	m.Helper()
	for line := range strings.Lines(m.people.stead("keyring", "ls")) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == use {
			return words[0]
		}
	}
	return ""
}

// rotated waits until no rotation is under way, and all servers have so many keys.
func (m *matrix) rotated(keys int) {
	m.Helper()
	m.people.eventually(3*time.Minute, "the key is rotated", func() error {
		out, err := m.people.trySteadFor(commandTime, "keyring", "ls")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err != nil || strings.Contains(out, "\n\n") || len(lines) != 1+keys {
			return fmt.Errorf("%v: %s", err, out)
		}
		for _, line := range lines[1:] {
			if !strings.HasSuffix(strings.TrimSpace(line), "s0,s1,s2") {
				return errors.New(out)
			}
		}
		return nil
	})
}

// replaceLost has a server lose its disk, and replaces it: by its name, or on an external store by another one's key.
func (m *matrix) replaceLost(i int) {
	m.Helper()
	m.kill(m.control[i].server)
	if err := os.RemoveAll(m.control[i].path("server")); err != nil {
		m.Fatal(err)
	}
	if m.external() {
		m.shareKey(m.control[i])
		m.startAgain(i)
		return
	}
	other := m.at(i)
	m.standing = slices.DeleteFunc(m.standing, func(n int) bool { return n == i })
	m.joinOwn(i, other.stead("server", "replace", serverName(i), "--yes"))
	m.quorate()
}
