package e2e

import (
	"fmt"
	"strings"
	"time"
)

// controlAway ends all servers. Who is held runs on, is restarted in place and found by
// name; who is guarded ends at its bound, everywhere. When servers are back the guarded
// return, with other lives, and nobody else begins anew.
func (m *matrix) controlAway() []string {
	m.Helper()
	var guarded []string
	before := map[string]member{}
	for _, f := range m.sets {
		for _, name := range f.members {
			before[name] = m.member(name)
			if f.guarded {
				guarded = append(guarded, name)
			}
		}
	}
	const killed = "etcd-1"
	at := m.hosts[m.hostOf(killed)]
	for _, c := range m.control {
		m.kill(c.server)
	}

	old := at.begun(killed)
	at.killMember(killed)
	for _, h := range m.hosts {
		for name, b := range before {
			fqdn := name + "." + setOf(name) + ".default.svc.cluster.local"
			h.eventually(time.Minute, "the host knows "+name, func() error {
				got, err := h.inside(commandTime, "dig", "@"+gateway, "+short", "+time=5", "+tries=1", fqdn)
				if strings.TrimSpace(got) != b.Status.Address {
					err = fmt.Errorf("dig says %v %q; want %s", err, got, b.Status.Address)
				}
				return err
			})
		}
	}
	at.eventually(2*time.Minute, killed+" is restarted in place", func() error {
		if now := at.begun(killed); now == "" || now == old {
			return fmt.Errorf("its processes are %q, were %q", now, old)
		}
		_, err := at.inside(commandTime, "curl", "-sf", "-m", "5", "http://"+before[killed].Status.Address+":2379/health")
		return err
	})
	for _, name := range guarded {
		for _, h := range m.hosts {
			h.eventually(3*time.Minute, name+" ends at its bound", func() error {
				if left := h.membersHere()[name]; len(left) > 0 {
					return fmt.Errorf("processes %v", left)
				}
				return nil
			})
		}
	}
	for i := range m.control {
		m.startServer(i)
	}
	for _, name := range guarded {
		m.people.eventually(patient, name+" is ready again", func() error {
			o, err := m.people.member(name)
			if err == nil && (!o.Status.Ready || o.Status.Token == before[name].Status.Token) {
				err = fmt.Errorf("%+v", o.Status)
			}
			return err
		})
	}
	m.people.eventually(patient, killed+" is known as restarted, and no more", func() error {
		o, err := m.people.member(killed)
		if b := before[killed].Status; err == nil && (!o.Status.Ready || o.Status.Token != b.Token || o.Status.Restarts <= b.Restarts) {
			err = fmt.Errorf("%+v, was %+v", o.Status, b)
		}
		return err
	})
	return []string{killed}
}
