package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// begun tells the containers of a member by the first process of each and its start,
// in the kernel's ticks since boot: "etcd=812@93214 witness=840@93219".
func (l *Lab) begun(name string) string {
	l.t.Helper()
	first := map[string]string{}
	for _, pid := range l.pidsOf(name) {
		container, start, isFirst := l.process(pid, name)
		if isFirst {
			first[container] = fmt.Sprintf("%s=%d@%s", container, pid, start)
		}
	}
	var all []string
	for _, one := range first {
		all = append(all, one)
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// process tells a process's container, its start, and whether it is the first of the
// container: the one that is number 1 in the container's own count.
func (l *Lab) process(pid int, name string) (container, start string, isFirst bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	group, err1 := os.ReadFile(dir + "/cgroup")
	stat, err2 := os.ReadFile(dir + "/stat")
	status, err3 := os.ReadFile(dir + "/status")
	if err1 != nil || err2 != nil || err3 != nil {
		return "", "", false // it ended
	}
	_, below, found := strings.Cut(string(group), "/default."+name+"/")
	if !found {
		return "", "", false
	}
	container, _, _ = strings.Cut(below, "\n")
	container, _, _ = strings.Cut(container, "/")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			in := strings.Fields(ids)
			isFirst = len(in) > 1 && in[len(in)-1] == "1"
		}
	}
	return container, fields[19], isFirst
}

// waitReadyFor is waitReady with another limit.
func (l *Lab) waitReadyFor(limit time.Duration, name string, since *member) {
	l.t.Helper()
	l.eventually(limit, name+" is ready", func() error {
		m, err := l.member(name)
		if err != nil {
			return err
		}
		if !m.Status.Ready || m.Status.Token == since.Status.Token && m.Status.Restarts <= since.Status.Restarts {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
}

func (d *database) wholeZooKeeper(n int) error {
	got, err := d.voters()
	if err == nil && got != n {
		err = fmt.Errorf("%d members have a vote", got)
	}
	return err
}

// releaseZooKeeper takes the member's vote away, again if that had no effect: a leader
// may just be elected.
func (d *database) releaseZooKeeper(ordinal int) {
	d.t.Helper()
	d.eventually(2*time.Minute, "the member whose disk is lost has no vote", func() error {
		if err := d.takeOut(ordinal + 1); err != nil {
			return err
		}
		votes, err := d.voters()
		if err != nil || votes < 3 {
			return err
		}
		m, err := d.member(d.name(ordinal))
		if err == nil && !m.Status.Ready { // else it is back already, with its data
			err = errors.New("it still has its vote")
		}
		return err
	})
}

func zookeeperEndpoints() string {
	var all []string
	for i := range 3 {
		all = append(all, zookeeperName(i)+":2181")
	}
	return strings.Join(all, ",")
}

func (d *database) wholeEtcd(n int) error {
	list, err := d.etcdList()
	if err == nil && len(list) != n {
		err = fmt.Errorf("etcd lists %d members, want %d", len(list), n)
	}
	for name, id := range list {
		if name == "" {
			err = fmt.Errorf("member %s was added and has not joined yet", id)
		}
	}
	return err
}

// etcdList is the id of each member that etcd lists, by name.
func (d *database) etcdList() (map[string]string, error) {
	var reply struct {
		Members []struct{ ID, Name string }
	}
	if err := d.etcdCall("member/list", "{}", &reply); err != nil {
		return nil, err
	}
	list := map[string]string{}
	for _, m := range reply.Members {
		list[m.Name] = m.ID
	}
	return list, nil
}

// releaseEtcd removes a member from the list, as its entry script asks for.
func (d *database) releaseEtcd(ordinal int) {
	d.t.Helper()
	d.eventually(time.Minute, "etcd forgets the member whose disk is lost", func() error {
		list, err := d.etcdList()
		if err != nil || list[d.name(ordinal)] == "" {
			return err
		}
		return d.etcdCall("member/remove", fmt.Sprintf(`{"ID":%q}`, list[d.name(ordinal)]), nil)
	})
}

// etcdCall asks the lowest member, which no act of these tests takes the disk of.
func (d *database) etcdCall(verb, body string, reply any) error {
	m, err := d.member("etcd-0")
	if err != nil {
		return err
	}
	url := "http://" + m.Status.Address + ":2379/v3/cluster/" + verb
	out, err := d.inside(time.Minute, "curl", "-sf", "-m", "5", "-X", "POST", "-d", body, url)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", verb, err, out)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal([]byte(out), reply)
}
