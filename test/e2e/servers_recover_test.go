package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// recoverOwn loses the data of all servers but one, by which the cluster goes on as after a restore.
func (m *matrix) recoverOwn() []string {
	m.Helper()
	stays := m.anyControl()
	var lost []int
	var names []string
	for i := range controls {
		m.kill(m.control[i].server)
		if i != stays {
			lost, names = append(lost, i), append(names, serverName(i))
		}
	}
	was := m.begunAll()
	c := m.control[stays]
	recover := func(lost ...string) (string, error) {
		return c.inside(commandTime, steadBinary, "server", "recover", "--data-dir", c.path("server"), "--name", serverName(stays), "--lost", strings.Join(lost, ","), "--yes")
	}
	refused := func(why string, lost ...string) {
		m.Helper()
		c.eventually(time.Minute, "it is refused: "+why, func() error {
			out, err := recover(lost...)
			if err == nil || !strings.Contains(out, why) {
				return fmt.Errorf("%v: %s", err, out)
			}
			return nil
		})
	}
	refused("the other servers of the store are", names[0])
	m.startOwnLater(lost[0])
	m.control[lost[0]].eventually(time.Minute, "a server waits for others", func() error {
		out, err := c.inside(commandTime, "bash", "-c", "exec 3<>/dev/tcp/"+controlAddress(lost[0])+"/7444")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	refused(names[0]+" answers at", names...)
	m.kill(m.control[lost[0]].server)
	for _, i := range lost {
		if err := os.RemoveAll(m.control[i].path("server")); err != nil {
			m.Fatal(err)
		}
	}
	if out, err := recover(names...); err != nil {
		m.Fatalf("recover: %v %s", err, out)
	}
	m.standing = []int{stays}
	m.startOwn(stays)
	if out := c.stead("status"); !strings.Contains(out, "HELD") {
		m.Errorf("after a recovery the store is not held:\n%s", out)
	}
	m.connected()
	c.stead("restore", "--yes")
	c.eventually(2*time.Minute, "the restore is complete", func() error {
		if out := c.stead("restore", "--status"); !strings.Contains(out, "complete") {
			return errors.New(out)
		}
		return nil
	})
	m.stillAll(was)
	for _, i := range lost {
		m.joinOwn(i, c.stead("server", "replace", serverName(i), "--yes"))
	}
	m.quorate()
	return nil
}

// setServerBack puts an old copy in place of all that a server has on disk, or of its store alone.
func (m *matrix) setServerBack() []string {
	m.Helper()
	i := m.anyControl()
	c := m.control[i]
	what, aside := c.path("server"), c.path("old")
	if m.chance.IntN(2) == 0 {
		what = c.path("server", "etcd", "data")
	}
	m.kill(c.server)
	if err := os.CopyFS(aside, os.DirFS(what)); err != nil {
		m.Fatal(err)
	}
	m.startOwn(i)
	m.quorate()
	old, err := os.ReadFile(c.path("server", "members.json"))
	if err != nil {
		old = nil // it has not kept anything yet
	}
	for changes := 0; changes < 2; changes++ { // what is kept is of one look before
		m.writes()
		c.eventually(time.Minute, "it is kept how far the store has come", func() error {
			now, err := os.ReadFile(m.at(i).path("server", "members.json"))
			if err == nil && string(now) == string(old) {
				err = errors.New("it is not yet")
			}
			old = now
			return err
		})
	}
	m.kill(c.server)
	if err := errors.Join(os.RemoveAll(what), os.Rename(aside, what)); err != nil {
		m.Fatal(err)
	}
	m.replaceRefused(i)
	return nil
}
