package engine

import (
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// lostBound is that of the life when it is lost.
const lostBound = 10 * time.Second

// withHooks gives a set the hook forget, and decommission without abort.
func withHooks(set *records.Set) {
	h := spec.MemberHook{Container: "db", Exec: &spec.ExecAction{Command: []string{"forget"}}}
	set.Spec.Forget = &h
	set.Spec.Decommission = &spec.Decommission{Container: "db", Exec: &spec.ExecAction{Command: []string{"leave"}}}
}

// hookOps are the records of member 0 that is to run a hook, and of member 1, which has left if anybody is to forget it.
func (st *stage) hookOps(hash spec.RevisionHash) (ops []store.Op) {
	if st.hook == nil {
		return nil
	}
	id, token, order := member(0), spec.Token{Epoch: 1, Number: 1}, *st.hook
	m := records.Member{ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Node: "n1", NodeUID: "x", Address: ip, Revision: hash}
	gone := &hooks.GoneMember{SetUID: "u1", ID: member(1), Token: token}
	order.ID = spec.Sequence{Epoch: 1, Rev: 1}
	r := records.Report{ID: id, Token: token, Phase: st.report, Ready: true, Hook: st.result}
	r.Hook.ID = order.ID
	switch order.Kind {
	case hooks.Decommission:
		gone, m.StopReason, m.Hook = nil, records.ReasonScaleDown, &order
	case hooks.Forget:
		order.Gone, m.Hook = gone, &order
	}
	ops = []store.Op{
		store.Put(store.MemberKey(id), store.Encode(m)), store.Put(store.ReportKey(id), store.Encode(r)),
		store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", Epoch: 1, Hooks: true})),
	}
	if gone != nil {
		ops = append(ops, store.Put(store.IdentityKey(member(1)), store.Encode(records.IdentityRecord{ID: member(1), LastToken: token, Gone: gone})),
			store.Put(store.BootstrappedKey("u1"), store.Encode(records.Bootstrapped{SetUID: "u1"})))
	}
	return ops
}
