package sim

import (
	"context"

	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// newReclaimer is the agent's, on the node's volumes.
func (n *node) newReclaimer(a *agent) *reclaim.Reclaimer {
	return reclaim.New(reclaim.Config{
		Volumes: hostVolumes{n: n}, RetryFirst: retryTime, RetryMost: retryTime, Now: n.now, Reported: func() {}, Logger: discard,
		Open: func(id spec.Identity) spec.Token { return a.led.Look(id).Open },
		Empty: func(ctx context.Context, id spec.Identity) (bool, error) {
			empty, err := hostRuntime{n: n}.Empty(ctx, id)
			for n.w.chance(2) { // before the volume is moved the worker may go on
				if x := a.workers[id]; x == nil || !x.step() {
					break
				}
				n.mustRun(a)
			}
			return empty, err
		},
	})
}

// beginTrash forgets what was ordered in the session before, and says first what lies in the
// trash.
func (x *session) beginTrash() {
	trash, whole := x.n.agent.reclaimer.NewSession(x.n.w.ctx)
	clear(x.n.agent.epochs)
	clear(x.n.agent.forgotten)
	x.sendVolumes(whole, trash)
}

func (x *session) sendVolumes(full bool, reports []records.VolumeReport) {
	docs, err := wire.Documents(reports)
	if err != nil {
		panic(err)
	}
	x.utter(&proto.VolumeReports{Full: full, ReportsJson: docs})
}

func (x *session) utter(m *proto.VolumeReports) {
	if m.GetFull() || len(m.GetReportsJson()) > 0 {
		x.n.uttered = append(x.n.uttered[max(0, len(x.n.uttered)-7):], m)
	}
	x.up = append(x.up, &proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: m}})
}

// sendVolumeReports sends what there is to say of volumes; false: nothing.
func (x *session) sendVolumeReports() bool {
	reports := x.n.agent.reclaimer.TakeReports()
	for _, r := range reports {
		if r.State == records.VolumeRefused {
			x.n.w.count("volume refused: " + string(r.Cause))
		}
	}
	if len(reports) > 0 {
		x.sendVolumes(false, reports)
	}
	return len(reports) > 0
}

// takeVolumes takes orders; a full list replaces all.
func (x *session) takeVolumes(m *proto.Wanted) {
	orders, err := wire.ToDocuments[records.VolumeOrder](m.GetVolumesJson())
	if err != nil {
		panic(err)
	}
	a := x.n.agent
	a.reclaimer.Take(m.GetFull(), orders)
	for _, o := range orders {
		if _, had := a.epochs[o.Volume]; !had || m.GetFull() {
			a.epochs[o.Volume] = wire.ToSequence(m.GetSequence()).Epoch
		}
		a.forgotten[o.Volume] = o
	}
}

// reclaim has an agent do something of what was ordered of volumes.
func (w *Cluster) reclaim() bool {
	at := w.r.IntN(len(w.nodes))
	for i := range w.nodes {
		if n := w.nodes[(at+i)%len(w.nodes)]; n.agent != nil && n.reclaim() {
			return true
		}
	}
	return false
}

// reclaim is one round of the agent's reclaimer; false: nothing was due.
func (n *node) reclaim() (did bool) {
	a := n.agent
	if len(a.epochs) == 0 {
		return false
	}
	for _, o := range a.forgotten {
		n.takeAny(o)
	}
	n.run(func() {
		a.reclaimer.Round(n.w.ctx, func(work func()) { did = true; work() })
	})
	return did
}
