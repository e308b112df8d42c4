package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// act does something and logs how long it took until all was well again.
func (h *hosts) act(what string, do func()) {
	h.Helper()
	if h.Failed() {
		return
	}
	began := time.Now()
	do()
	h.Logf("%s: %v", what, time.Since(began).Round(time.Second))
}

// on is who of the members named is on a host now.
func (h *hosts) on(i int, names ...string) (here []member) {
	h.Helper()
	all := h.known(names...)
	for _, name := range names {
		if m := all[name]; m.Node == host(i) {
			here = append(here, m)
		}
	}
	return here
}

// returned waits until a member of a host that was off is ready again. From the moment at which its life of before
// is not shown as ready any more it must not be shown so again.
func (h *hosts) returned(was member) {
	h.Helper()
	over := false
	h.eventually(was.Name+" returns", func() error {
		m, err := h.tryMember(was.Name)
		if err != nil {
			return err
		}
		over = over || !m.Ready || m.Token != was.Token
		if over && m.Ready && m.Token == was.Token {
			h.Errorf("%s is shown as ready again in its life of the boot before: %+v", was.Name, m)
		}
		if !m.Ready || m.Token == was.Token {
			return fmt.Errorf("%+v, was %+v", m, was)
		}
		if m.Address != was.Address {
			h.Errorf("%s returned as %+v, was %+v", was.Name, m, was)
		}
		return nil
	})
}

// unwilling is less than the 90 s for which systemd waits at shutdown for a process that does not end by SIGTERM.
const unwilling = 85 * time.Second

// reboot reboots a host in an orderly way and waits until its members are back. Nobody lends a hand.
func (h *hosts) reboot(i int, names ...string) {
	h.Helper()
	was := h.on(i, names...)
	began := time.Now()
	h.lab("off", fmt.Sprint(i), "reboot")
	if took := time.Since(began); took > unwilling {
		h.Errorf("the shutdown of %s took %v: something does not end by SIGTERM:\n%s", host(i), took, h.lab("log", fmt.Sprint(i)))
	}
	h.lab("start", fmt.Sprint(i))
	for _, m := range was {
		h.returned(m)
	}
	h.connected()
}

// losePower is a power loss, and power that comes back after a time.
func (h *hosts) losePower(i int, off time.Duration, names ...string) {
	h.Helper()
	was := h.on(i, names...)
	h.lab("kill", fmt.Sprint(i))
	time.Sleep(off)
	h.lab("start", fmt.Sprint(i))
	for _, m := range was {
		h.returned(m)
	}
	h.connected()
}

// lives are the lives that members have now, by name.
func (h *hosts) lives(names ...string) map[string]member {
	h.Helper()
	known, all := h.known(names...), map[string]member{}
	for _, name := range names {
		all[name] = known[name]
	}
	return all
}

// assertHeld fails the test when one of them has another life now, or was started again.
func (h *hosts) assertHeld(was map[string]member) {
	h.Helper()
	known := h.known(slices.Collect(maps.Keys(was))...)
	for name, before := range was {
		if now := known[name]; now.Token != before.Token || now.Restarts != before.Restarts {
			judge.Broken(h, "%s was touched: it was %+v and is %+v", name, before, now)
		}
	}
}

// freeze stops a host with a guarded life, clocks going on, until that is replaced elsewhere, and lets it go on. The
// guarded life of before must not be heard again, but for the first moment; those that are held live on.
func (h *hosts) freeze(held ...string) {
	h.Helper()
	was, i := h.aGuardOff(1)
	lives := h.lives(held...)
	h.lab("freeze", fmt.Sprint(i))
	now := h.ready(was.Name, was)
	h.stalls = append(h.stalls, stall{"default/" + was.Name, was.Token, clock(h)})
	h.lab("thaw", fmt.Sprint(i))
	if now.Node == was.Node {
		h.Errorf("%s was replaced on its frozen host: %+v, was %+v", was.Name, now, was)
	}
	h.connected()
	h.eventually("the guarded life of before ends on "+host(i), func() error {
		return h.noLife(i, was)
	})
	for name := range lives {
		h.ready(name)
	}
	h.assertHeld(lives)
	h.judge()
}

// aGuardOff is a guarded member that is not on a host, and its host.
func (h *hosts) aGuardOff(not int) (m member, i int) {
	h.Helper()
	h.eventually("a guarded member is elsewhere", func() error {
		for _, name := range guards {
			m = h.ready(name)
			i = h.hostOf(m)
			if i != not {
				return nil
			}
		}
		return fmt.Errorf("%+v", m)
	})
	return m, i
}

// noLife fails while processes of a member are on a host that it is not assigned to.
func (h *hosts) noLife(i int, was member) error {
	if h.member(was.Name).Node == host(i) {
		return nil // it is there again
	}
	out, err := h.trySSH(i, "cat /sys/fs/cgroup/stead-*/default."+was.Name+"/*/cgroup.procs 2>/dev/null || true")
	if err == nil && strings.TrimSpace(out) != "" {
		err = fmt.Errorf("processes %q", out)
	}
	return err
}

// cut pulls the cable of a host with a guarded life until that is replaced elsewhere, and puts it in again.
func (h *hosts) cut(held ...string) {
	h.Helper()
	was, i := h.aGuardOff(1)
	lives := h.lives(held...)
	h.lab("cut", fmt.Sprint(i))
	h.ready(was.Name, was)
	h.lab("heal", fmt.Sprint(i))
	h.connected()
	for name := range lives {
		h.ready(name)
	}
	h.assertHeld(lives)
	h.judge()
}

// bound is longer than guarded lives of this package live without a server.
const bound = 20 * time.Second

// stepClock sets the clock of a host, watches for longer than the bound, and sets it right: nobody's life ends.
func (h *hosts) stepClock(i int, step time.Duration, names ...string) {
	h.Helper()
	was := h.lives(names...)
	for _, seconds := range []int{int(step.Seconds()), -int(step.Seconds())} {
		h.lab("clock", fmt.Sprint(i), fmt.Sprint(seconds))
		for began := time.Now(); time.Since(began) < bound; time.Sleep(time.Second) {
			if out, err := h.trySSH(1, "stead get nodes"); err == nil && strings.Count(out, " Ready") < h.n {
				h.Logf("after a step of %d s of %s:\n%s", seconds, host(i), out)
			}
		}
		h.connected()
		for name := range was {
			h.ready(name)
		}
		h.assertHeld(was)
	}
}
