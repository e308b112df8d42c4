package agent

import (
	"sync"
	"time"

	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// traces tells of what this node does for members until they are ready, and of the names that lead to them then.
type traces struct {
	to *trace.Tracer

	mu    sync.Mutex
	ready map[spec.Identity]trace.Context // of which the name server has not heard
}

// mostReady bounds ready: what no snapshot ever tells of is forgotten.
const mostReady = 1000

// done tells of what a worker did.
func (t *traces) done(life *records.Life, d worker.Done) {
	m := &life.Member
	if m.Trace == "" {
		return
	}
	t.to.Tell(trace.Span{Name: d.What, Parent: m.Trace, Began: d.Began, Ended: d.Ended, Err: d.Err, About: []string{
		"stead.member", m.ID.MemberName(), "stead.container", d.Container,
	}})
	if !d.Ready {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ready) < mostReady {
		t.ready[m.ID] = m.Trace
	}
}

// around is take, which has the name server answer from snapshots, and tells how long that took for members that became ready.
func (t *traces) around(take func([]records.Snapshot)) func([]records.Snapshot) {
	if t.to == nil {
		return take
	}
	return func(all []records.Snapshot) {
		began := time.Now()
		take(all)
		t.told(all, began)
	}
}

func (t *traces) told(all []records.Snapshot, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ready) == 0 {
		return
	}
	now := time.Now()
	for i := range all {
		for _, p := range all[i].Peers {
			id := spec.Identity{Namespace: all[i].Ref.Namespace, Set: all[i].Ref.Name, Ordinal: p.Ordinal}
			if c, waits := t.ready[id]; waits && p.Ready {
				t.to.Tell(trace.Span{Name: "names", Parent: c, Began: began, Ended: now, About: []string{"stead.member", id.MemberName()}})
				delete(t.ready, id)
			}
		}
	}
}
