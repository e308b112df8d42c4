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
		Volumes: hostVolumes{n: n}, RetryFirst: retryTime, RetryMost: retryTime, Now: n.now, Reported: a.outbox.Notify, Logger: discard,
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

// utter has a node say something of volumes.
func (x *stream) utter(m *proto.VolumeReports) {
	for _, r := range got(wire.ToDocuments[records.VolumeReport](m.GetReportsJson())) {
		if r.State == records.VolumeRefused {
			x.n.w.count("volume refused: " + string(r.Cause))
		}
	}
	if m.GetFull() || len(m.GetReportsJson()) > 0 {
		x.n.uttered = append(x.n.uttered[max(0, len(x.n.uttered)-7):], m)
	}
	x.up = append(x.up, &proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: m}})
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
