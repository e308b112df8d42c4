package sim

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// ahead has the run's nodes pull the images of updates before members are stopped, or not. It is a choice of its own, so
// that runs that were kept before stay as they are.
func (w *Cluster) ahead() bool {
	w.prepares = !w.chance(3)
	for _, n := range w.nodes { // they say so in their next hello
		n.endSession("its agent is replaced by one that may prepare")
	}
	return true
}

// prepare has the node say which images of updates it has by now: each pull takes a while, and of missing ones it says so.
func (n *node) prepare() {
	a := n.agent
	if !n.w.prepares || a == nil || a.prepared == nil {
		return
	}
	before := a.hasPrepared
	a.hasPrepared = nil
	for _, p := range a.toPrepare {
		if i := slices.IndexFunc(before, func(b records.Prepared) bool { return b.Ref == p.Ref && b.Revision == p.Revision }); i >= 0 {
			a.hasPrepared = append(a.hasPrepared, before[i])
			continue
		}
		if n.w.chance(3) {
			continue
		}
		now := records.Prepared{Ref: p.Ref, Revision: p.Revision, Done: true}
		for _, i := range p.Images {
			if strings.HasPrefix(i.Image, "missing") {
				now.Done, now.Cause, now.Message = false, causes.ImageMissing, "there is no "+i.Image
			}
		}
		n.w.count("image pulled ahead: " + map[bool]string{true: "done", false: "missing"}[now.Done])
		a.hasPrepared = append(a.hasPrepared, now)
	}
	a.prepared.Set(a.hasPrepared)
}
