package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// home is where a member runs now.
func (s *spread) home(name string) *Lab {
	s.t.Helper()
	return s.host(s.waitReady(name, nil))
}

// host is where a member is.
func (s *spread) host(m member) *Lab {
	s.t.Helper()
	i := slices.IndexFunc(s.hosts, func(h *Lab) bool { return h.nodeName() == m.Status.Node })
	if i < 0 {
		s.t.Fatalf("it is on no host: %+v", m.Status)
	}
	return s.hosts[i]
}

// on are the members of a host.
func (s *spread) on(h *Lab) map[string]member {
	s.t.Helper()
	all := map[string]member{}
	for _, name := range s.names() {
		if m := s.waitReady(name, nil); m.Status.Node == h.nodeName() {
			all[name] = m
		}
	}
	return all
}

// mine are those of the database itself, without the set that it needs.
func (s *spread) mine(members map[string]member) map[string]member {
	own := maps.Clone(members)
	maps.DeleteFunc(own, func(name string, _ member) bool { return setOf(name) != s.set })
	return own
}

// lives tell of each member what stays of it when nobody concerns it.
func (s *spread) lives() map[string]tale {
	s.t.Helper()
	all := map[string]tale{}
	for _, name := range s.names() {
		m := s.waitReady(name, nil)
		all[name] = tale{m.Status.Token, m.Status.Address, s.host(m).begun(name)}
	}
	return all
}

// assertLives fails the test when one of the members, but those that are concerned, is not what it was.
func (s *spread) assertLives(was map[string]tale, concerned map[string]member) {
	s.t.Helper()
	now := s.lives()
	for name, before := range was {
		if _, its := concerned[name]; !its && now[name] != before {
			judge.Broken(s.t, "%s was %+v and is %+v, though it was not concerned", name, before, now[name])
		}
	}
}

// returned waits until members have other lives at their addresses: on the host where they were, or not there.
func (s *spread) returned(were map[string]member, there bool) {
	s.t.Helper()
	for name, was := range were {
		now := s.waitReady(name, &was)
		if now.Status.Token == was.Status.Token || now.Status.Address != was.Status.Address || (now.Status.Node == was.Status.Node) != there {
			s.t.Errorf("%s was %+v and is %+v", name, was.Status, now.Status)
		}
	}
}

// link takes the way from a host to all others down or up.
func (s *spread) link(h *Lab, state string) {
	s.t.Helper()
	s.run("ip", "-n", s.hosts[0].Name+"-sw", "link", "set", fmt.Sprint("h", slices.Index(s.hosts, h)), state)
}

// silent waits until a host has no session.
func (s *spread) silent(h *Lab) {
	s.t.Helper()
	s.eventually(time.Minute, "the node is silent", func() error {
		out, err := s.trySteadFor(time.Minute, "get", "nodes")
		if err != nil || !strings.Contains(lineWith(out, h.nodeName()), "Silent") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// stays fails the test when members of a silent host have begun other lives.
func (s *spread) stays(were map[string]member) {
	s.t.Helper()
	for name, was := range were {
		if now := s.mustMember(name); now.Status.Token != was.Status.Token || now.Status.Node != was.Status.Node {
			judge.Broken(s.t, "%s is on a silent host as %+v, and now %+v", name, was.Status, now.Status)
		}
	}
}

// none fails the test when members have processes on a host.
func (s *spread) none(h *Lab, were map[string]member) {
	s.t.Helper()
	for name := range were {
		if pids := h.pidsOf(name); len(pids) > 0 {
			judge.Broken(s.t, "%s has the processes %v on %s: processes left", name, pids, h.Name)
		}
	}
}

// leaderEtcd is the member that says it is the leader itself.
func leaderEtcd(l *Lab) (int, error) {
	var said []string
	for i := range 3 {
		m, err := l.member(fmt.Sprint("etcd-", i))
		if err != nil {
			return 0, err
		}
		out, err := l.inside(time.Minute, "curl", "-sf", "-m", "5", "-X", "POST", "-d", "{}", "http://"+m.Status.Address+":2379/v3/maintenance/status")
		var status struct {
			Header struct {
				ID string `json:"member_id"`
			}
			Leader string
		}
		if err == nil && json.Unmarshal([]byte(out), &status) == nil && status.Leader != "" && status.Leader == status.Header.ID {
			return i, nil
		}
		said = append(said, fmt.Sprintf("%v: %s", err, out))
	}
	return 0, fmt.Errorf("no member leads: %q", said)
}

// askZooKeeper sends a member a word of four letters.
func (l *Lab) askZooKeeper(ordinal int, word string) (string, error) {
	m, err := l.member(fmt.Sprint("zookeeper-", ordinal))
	if err != nil {
		return "", err
	}
	return l.inside(time.Minute, "timeout", "5", "bash", "-c", `exec 3<>"/dev/tcp/$0/2181" && printf "%s" "$1" >&3 && cat <&3`, m.Status.Address, word)
}

func leaderZooKeeper(l *Lab) (int, error) {
	for i := range 5 {
		if out, err := l.askZooKeeper(i, "srvr"); err == nil && strings.Contains(out, "Mode: leader") {
			return i, nil
		}
	}
	return 0, errors.New("no member leads")
}

// wholeZooKeeper counts the members that have a vote, as the leader's configuration says.
func wholeZooKeeper(l *Lab, n int) error {
	leader, err := leaderZooKeeper(l)
	if err != nil {
		return err
	}
	out, err := l.askZooKeeper(leader, "conf")
	if got := strings.Count(out, ":participant"); err == nil && got != n {
		err = errors.New(strconv.Itoa(got) + " members have a vote")
	}
	return err
}
