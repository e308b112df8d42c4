package dispatch

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// A life is never told another name than it was begun with, also one that an earlier
// version began, which wrote none down.
func TestALifeKeepsTheServiceItWasBegunWith(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
	set := testSet(3)
	set.Spec.ServiceName = "renamed"
	r.Record(store.SetKey(refDB), set)
	for n, service := range []string{"", "dbs", "renamed"} {
		m := testMember(n, int64(10+n), "n1", "uid1")
		m.Service = service
		r.Record(store.MemberKey(ident(n)), m)
	}
	n := r.connect(n1)
	for i, l := range n.lives(n.wanted()) {
		if want := []string{"dbs", "dbs", "renamed"}[i]; l.Service != want {
			t.Errorf("%s was told the service %q, want %q", l.Member.ID, l.Service, want)
		}
	}
}
