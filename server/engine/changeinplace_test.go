package engine

import (
	"fmt"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

func imageOf(image string) spec.Template {
	return spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "db", Image: image}}}}
}

// A change in place that asks for more counts from its order on: of sets that grow at once only as many do as there is room for.
func TestANodeIsPromisedOnceToLivesThatGrow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.commit(store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "uid-n1", Boot: "boot1", CPUMillis: 1700, MemoryBytes: 1 << 30, Level: spec.Level})))
		refs := make([]spec.SetRef, 3)
		asks := func(millis int64) func(*records.Set) {
			return func(s *records.Set) {
				spec.Default(&s.Spec)
				s.Spec.UpdateStrategy.InPlace = []changes.Kind{changes.Resources}
				s.Spec.Template.Spec.Containers[0].Resources.Requests = map[string]scalar.Quantity{"cpu": {Milli: millis}}
			}
		}
		all := func(millis int64) {
			for i := range refs {
				refs[i] = spec.SetRef{Namespace: "default", Name: spec.SetName(fmt.Sprint("s", i))}
				c.asking(fmt.Sprint("s", i), asks(millis))
			}
		}
		all(500)
		_, stop := c.engine("a", c.store)
		defer stop()
		c.until("all are complete", func(v cache.View) bool {
			for _, ref := range refs {
				if st := v.Status(ref); st == nil || !st.CurrentCompleted {
					return false
				}
			}
			return true
		})
		all(700)
		c.until("one has grown, and the others wait for room", func(v cache.View) bool {
			if _, cpu := claimed(v); cpu > 1700 {
				t.Fatalf("lives ask for %d millicores of 1700", cpu)
			}
			grown, stopped := 0, 0
			for _, ref := range refs {
				switch m := v.Member(spec.Identity{Namespace: ref.Namespace, Set: ref.Name}); {
				case m == nil:
				case m.Changed != (spec.Sequence{}) && m.Change == nil && m.Began != "":
					grown++
				case m.Goal == records.GoalStop && m.StopReason == records.ReasonUpdate:
					stopped++
				}
			}
			return grown == 1 && stopped == 2
		})
	})
}

// changing has the member 0 of another image change in place; changed: its node says that it has.
func changing(set *records.Set) {
	set.Spec.Template = imageOf("db:2")
	set.Spec.UpdateStrategy = spec.UpdateStrategy{Type: spec.RollingUpdateStrategy, InPlace: []changes.Kind{changes.Image}}
}

func changed(set *records.Set) {
	changing(set)
	set.Annotations = map[string]string{"changed": "yes"}
}

// changeOps are the records of member 0, which has the image db:1.
func changeOps(set *records.Set, to spec.RevisionHash) []store.Op {
	if len(set.Spec.UpdateStrategy.InPlace) == 0 {
		return nil
	}
	id, token := member(0), spec.Token{Epoch: 1, Number: 1}
	m := records.Member{ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Node: "n1", NodeUID: "x", Address: ip, Revision: "old"}
	r := records.Report{ID: id, Token: token, Phase: records.PhaseRunning, Ready: true}
	if set.Annotations != nil {
		m.Change = &inplace.ChangeOrder{ID: spec.Sequence{Epoch: 1, Rev: 2}, Revision: to}
		r.Change = inplace.ChangeResult{ID: m.Change.ID, Revision: to, Done: true}
	}
	return []store.Op{
		store.Put(store.RevisionKey(db, "old"), store.Encode(records.Revision{Ref: db, SetUID: "u1", Hash: "old", Number: 0, Template: imageOf("db:1")})),
		store.Put(store.MemberKey(id), store.Encode(m)), store.Put(store.ReportKey(id), store.Encode(r)),
		store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, LastToken: token, Address: ip, Due: "old", AvailableOn: "old", ReadyOnce: "u1", ReadyToken: token})),
		store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", Epoch: 1, Level: spec.Level})),
		store.Put(store.StatusKey(db), store.Encode(records.SetStatus{CurrentRevision: "old", CurrentCompleted: true, UpdateRevision: to})),
	}
}
