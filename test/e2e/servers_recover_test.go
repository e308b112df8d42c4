package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records/stores"
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

// keptMarks are how far the members of the store have come, as a server keeps it that is not the i-th.
func (m *matrix) keptMarks(i int) map[string]stores.Mark {
	m.Helper()
	var kept struct {
		Marks map[string]stores.Mark `json:"marks"`
	}
	if err := durable.GetJSON(m.at(i).path("server", "members.json"), &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.Fatal(err)
	}
	return kept.Marks
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
	if out, err := exec.Command("cp", "-a", what, aside).CombinedOutput(); err != nil { // with its sockets
		m.Fatalf("%v %s", err, out)
	}
	m.startOwn(i)
	m.quorate()
	for range 2 { // what is kept is of one look before
		old := m.keptMarks(i)
		c.eventually(2*time.Minute, "it is kept how far each member has come", func() error {
			m.writes()
			now := m.keptMarks(i)
			later := 0
			for id, mark := range now {
				if mark.Index > old[id].Index {
					later++
				}
			}
			if later != controls {
				return fmt.Errorf("%v is kept, after %v", now, old)
			}
			return nil
		})
	}
	m.kill(c.server)
	if err := errors.Join(os.RemoveAll(what), os.Rename(aside, what)); err != nil {
		m.Fatal(err)
	}
	m.replaceRefused(i)
	return nil
}
