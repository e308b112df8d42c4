package plan

import (
	"cmp"

	"github.com/stead-project/stead/records"
)

// The governing service may be renamed (apply --rename-service). A life keeps, until it is
// over, the name that it was begun with; a new one gets the set's. The rename restarts
// the members as an update does, and is complete with it, when every life has the new
// name; until then the status holds the former one, and members are found under both.

// Former is the service under which members are found beside the set's own, because a
// rename is not complete; "": none.
func Former(set *records.Set, st *records.SetStatus, slots []Slot) string {
	now := set.Service()
	if st != nil && st.ServiceName != "" {
		if st.ServiceName == now {
			return ""
		}
		return st.ServiceName
	}
	for i := range slots { // the status is lost, or of an earlier version
		if m := slots[i].Member; m != nil && m.Service != "" && m.Service != now {
			return m.Service
		}
	}
	return ""
}

// Service is the governing service that a life was begun with. former is that of Former.
func Service(set *records.Set, former string, m *records.Member) string {
	return cmp.Or(m.Service, former, set.Service())
}

// service is what the status is to say: the former name until the rename is complete.
func (r reporter) service() string {
	if r.finished && r.renamed() {
		return r.world.Set.Service()
	}
	return cmp.Or(r.former, r.world.Set.Service())
}
