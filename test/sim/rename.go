package sim

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// rename gives a set another governing service, as control does: not before the rename
// before it is complete, and with a restart of all.
func (w *Cluster) rename() bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || old.Deleting || old.Orphaned {
		return false
	}
	x := w.view().World(ref)
	if x.Status == nil || x.Status.ServiceName == "" || plan.Former(old, x.Status, x.Slots) != "" {
		return false
	}
	set := spec.Clone(*old)
	names := []string{"", "web", "data"}
	at := slices.Index(names, old.Spec.ServiceName)
	set.Spec.ServiceName, set.RestartedAt = names[(at+1+w.r.IntN(2))%3], fmt.Sprint(w.clock.UnixNano())
	set.Generation++
	w.note("the user renames the service %s to %s", old.Service(), set.Service())
	w.putSet(set, rev)
	return true
}
