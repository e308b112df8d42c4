package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// drained: who is on the host stops, and waits for it with its volume; the others go on.
func (s *spread) drained() {
	s.t.Helper()
	h := s.home(s.name(s.leads(s.entry)))
	were, lives := s.on(h), s.lives()
	drain := []string{"drain", h.nodeName(), "--timeout", s.patience()}
	if len(s.mine(were)) > 1 {
		drain = append(drain, "--disable-eviction") // both wait for their host, and the set may lose one
	}
	s.stead(drain...)
	s.none(h, were)
	s.goesOnWithout()
	s.stead("uncordon", h.nodeName())
	s.returned(were, true)
	s.assertLives(lives, were)
}

// moved: the leader goes to the host with the fewest members of its set, with its volume.
func (s *spread) moved() {
	s.t.Helper()
	name := s.name(s.leads(s.entry))
	from := s.home(name)
	var to *Lab
	for _, h := range s.hosts[1:] {
		if h != from && (to == nil || len(s.mine(s.on(h))) < len(s.mine(s.on(to)))) {
			to = h
		}
	}
	were, lives := map[string]member{name: s.mustMember(name)}, s.lives()
	s.stead("move", name, "--to", to.nodeName(), "--wait", "--timeout", s.patience())
	s.returned(were, false)
	if now := s.home(name); now != to {
		s.t.Errorf("%s is on %s, and was moved to %s", name, now.Name, to.Name)
	}
	s.none(from, were)
	s.arranged()
	s.assertLives(lives, were)
}

// cutOff: who is on the host runs on, and nobody else has its identity. A writer on that host asks it all the time: what it is
// acknowledged, there or elsewhere, must be kept as well.
func (s *spread) cutOff() {
	s.t.Helper()
	h := s.home(s.name(s.leads(s.entry)))
	were, lives := s.on(h), s.lives()
	stop := h.startLoad(append([]string{"--prefix", fmt.Sprintf("cut-%d/", len(h.all)), "--pause", "20ms"}, s.load...)...)
	h.all[len(h.all)-1].waitSaid(h, "writing\nwriting\n")
	s.link(h, "down")
	s.silent(h)
	s.goesOnWithout()
	for name := range were {
		if now := h.begun(name); now != lives[name].begun {
			s.t.Logf("%s ran as %s and runs as %s: it began again by itself", name, lives[name].begun, now)
		}
	}
	s.stays(were)
	s.link(h, "up")
	s.settle()
	s.stays(were)
	stop()
	s.assertLives(lives, were)
}

// powerLost: the host ends with all on it, and is switched on again. Nobody says anything, and members wait for it.
func (s *spread) powerLost() {
	s.t.Helper()
	h := s.home(s.name(s.leads(s.entry)))
	were, lives := s.on(h), s.lives()
	s.powerOff(h)
	s.stays(were)
	s.powerOn(h)
	s.returned(were, true)
	s.assertLives(lives, were)
}

// powerOff ends a host with all on it; the others go on.
func (s *spread) powerOff(h *Lab) {
	s.t.Helper()
	s.link(h, "down")
	h.losePower()
	s.silent(h)
	s.goesOnWithout()
}

// arranged waits for what a database does about members that have another host.
func (s *spread) arranged() {
	s.t.Helper()
	if s.entry.afterMove != nil {
		s.eventually(time.Minute, "its hosts are arranged", func() error { return s.entry.afterMove(s.Lab) })
	}
}

// powerOn lets a host boot.
func (s *spread) powerOn(h *Lab) {
	s.t.Helper()
	s.link(h, "up")
	s.newBoot(h)
	h.startContainerd()
	h.startAgent()
}

// offForGood: the host of a follower loses its power. An operator says that it is off and its disks are lost; its members begin on
// other hosts with empty ones. Then it returns after all, and what it has goes to its trash.
func (s *spread) offForGood() {
	s.t.Helper()
	h := s.home(s.name(s.follows(s.entry)))
	were, lives := s.on(h), s.lives()
	s.powerOff(h)
	s.stays(were)
	s.stead("node", "fence", h.nodeName(), "--i-have-powered-off")
	var places []string
	for name := range were {
		set, ordinal := setOf(name), name[strings.LastIndexByte(name, '-')+1:]
		places = append(places, h.path("agent/volumes/default", set, "data-"+ordinal))
		s.stead("volume", "reclaim", "data-"+name, "--lost", "--yes", "--wait", "--timeout", s.patience())
	}
	s.returned(were, false)
	s.waitWhole(s.size)
	s.goesOn()
	s.powerOn(h)
	h.eventually(2*time.Minute, "its volumes are in its trash", func() error {
		for _, place := range places {
			if _, err := os.Stat(place); err == nil {
				return fmt.Errorf("%s is there", place)
			}
		}
		return nil
	})
	s.none(h, were)
	s.arranged()
	s.assertLives(lives, were)
}

// leaveOff: a fourth member's host is off, and the set becomes smaller again. Its peers forget it. It returns with the disk that it had.
func (s *spread) leaveOff() {
	s.t.Helper()
	last := s.name(s.size)
	scale := func(n int, flags ...string) {
		s.stead(append([]string{"scale", s.set, "--replicas", strconv.Itoa(n)}, flags...)...)
	}
	wait := []string{"--wait", "--timeout", s.patience()}
	scale(s.size+1, wait...)
	s.waitWhole(s.size + 1)
	was := s.mustMember(last)
	h, lives := s.host(was), s.lives()
	were := s.on(h) // of the set that it needs
	s.powerOff(h)
	s.stead("node", "fence", h.nodeName(), "--i-have-powered-off")
	scale(s.size)
	s.eventually(time.Minute, last+" is gone", func() error {
		if m, err := s.member(last); err == nil {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
	s.waitWhole(s.size)
	s.powerOn(h)
	s.returned(were, true)
	scale(s.size+1, wait...)
	s.waitWhole(s.size + 1)
	if now := s.waitReady(last, &was); now.Status.Node != h.nodeName() || now.Status.Address != was.Status.Address {
		s.t.Errorf("%s was %+v and is %+v", last, was.Status, now.Status)
	}
	scale(s.size, wait...)
	s.assertLives(lives, were)
}

// lapse: lives that are to end by themselves do so on a host that is cut off. They begin nowhere else, for their volumes are there, and
// there again when it is back.
func (s *spread) lapse() {
	s.t.Helper()
	const head = "\nkind: StatefulSet\n"
	size := fmt.Sprintf("\n  replicas: %d\n", s.size)
	text := s.variant(s.edit(), s.image)
	changes := []string{size, size + "  nodeLoss: {policy: Replace, after: 20s}\n"}
	if strings.Contains(text, "apiVersion: apps/v1"+head) {
		changes = append(changes, "apiVersion: apps/v1"+head, "apiVersion: stead/v1"+head)
	}
	s.applyAs(changes...)
	s.waitWhole(s.size)
	h := s.home(s.name(s.leads(s.entry)))
	were, lives := s.mine(s.on(h)), s.lives() // those of the set that it needs do not end
	s.link(h, "down")
	h.eventually(2*time.Minute, "they end by themselves", func() error {
		for name := range were {
			if pids := h.pidsOf(name); len(pids) > 0 {
				return fmt.Errorf("%s has the processes %v", name, pids)
			}
		}
		return nil
	})
	s.silent(h)
	s.goesOnWithout()
	for name := range were {
		s.eventually(time.Minute, name+" waits for its host", func() error {
			m, err := s.member(name)
			if err == nil && (m.Status.Ready || m.Status.Node != h.nodeName() || m.Status.Blocked == "") {
				err = fmt.Errorf("%+v", m.Status)
			}
			return err
		})
		for _, other := range s.hosts {
			s.none(other, were)
		}
	}
	s.link(h, "up")
	s.returned(were, true)
	s.assertLives(lives, were)
}
