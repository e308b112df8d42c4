package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
)

// The words of a case: the set's service, that of the status ("": none is stored), and
// those that the lives of the world were begun with.
func TestARenameIsCompleteWithEveryLife(t *testing.T) {
	const settled = "ordered 2 n1 update=h2 current=h2 0:ready/h2 1:ready/h2"
	for _, c := range []struct {
		name, world     string
		service, stored string
		lives           []string
		want, former    string
	}{
		{"a set that was never looked at", "ordered 2 n1", "dbs", "", nil, "dbs", ""},
		{"one without a service is found under its name", "ordered 2 n1", "", "", nil, "db", ""},
		{"a status of an earlier version", settled, "dbs", "", []string{"", ""}, "dbs", ""},
		{"nothing was renamed", settled, "dbs", "dbs", []string{"dbs", "dbs"}, "dbs", ""},
		{"lives of an earlier version have the name of the status", settled, "dbs", "db", []string{"", ""}, "db", "db"},
		{"the last life has the former name", settled, "dbs", "db", []string{"db", "dbs"}, "db", "db"},
		{"all have the new one", settled, "dbs", "db", []string{"dbs", "dbs"}, "dbs", "db"},
		{"a lost status is read from the lives", settled, "dbs", "", []string{"db", "dbs"}, "db", "db"},
		{"from whichever has the former one", settled, "dbs", "", []string{"dbs", "db"}, "db", "db"},
		{"and not from one of an earlier version", settled, "dbs", "", []string{"", "db"}, "db", "db"},
		{"not while the update goes on", "ordered 2 n1 update=h2 current=h1 0:ready 1:ready/h2", "dbs", "db", []string{"dbs", "dbs"}, "db", "db"},
		{"nor before all are available", "ordered 2 n1 update=h2 current=h2 0:ready/h2 1:starting/h2", "dbs", "db", []string{"dbs", "dbs"}, "db", "db"},
		{"nor while it is paused", "ordered 2 paused n1 update=h2 current=h2 0:ready/h2 1:ready/h2", "dbs", "db", []string{"dbs", "dbs"}, "db", "db"},
		{"nor once it was given up", "ordered 2 n1 update=h3 current=h2 back=h3 0:ready/h2 1:ready/h2", "dbs", "db", []string{"dbs", "dbs"}, "db", "db"},
		{"nor for a set that nobody owns", "ordered 2 orphaned n1 update=h2 current=h2 0:ready/h2 1:ready/h2", "dbs", "db", []string{"dbs", "dbs"}, "db", "db"},
		{"surplus that runs has its name", "ordered 1 n1 update=h2 current=h2 0:ready/h2 1:stopping", "dbs", "db", []string{"dbs", "db"}, "db", "db"},
		{"surplus that is over has none", "ordered 1 n1 update=h2 current=h2 0:ready/h2 1:stopped", "dbs", "db", []string{"dbs", "db"}, "dbs", "db"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			w.Set.Spec.ServiceName = c.service
			if w.Status == nil {
				w.Status = &records.SetStatus{}
			}
			w.Status.ServiceName = c.stored
			for i, service := range c.lives {
				w.Slots[i].Member.Service = service
			}
			if got := Former(w.Set, w.Status, w.Slots); got != c.former {
				t.Errorf("former service %q, want %q", got, c.former)
			}
			p := Next(w)
			if p.Status.ServiceName != c.want {
				t.Errorf("the status has the service %q, want %q", p.Status.ServiceName, c.want)
			}
			if c.stored == "" && len(c.lives) > 0 && len(p.Actions) > 0 {
				t.Errorf("%s is done, though nothing changed but the version", brief(p))
			}
			for _, a := range p.Actions {
				if a, ok := a.(Start); ok && a.Member.Service != w.Set.Service() {
					t.Errorf("a life begins with the service %q", a.Member.Service)
				}
			}
		})
	}
}
