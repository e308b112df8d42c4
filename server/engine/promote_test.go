package engine

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// differing has another member than 0 differ from the template.
func differing(set *records.Set) {
	set.Spec.Members = spec.Differences{{Ordinals: []spec.OrdinalSpan{{First: 5, Last: 5}}, NodeSelector: map[string]string{"disk": "ssd"}}}
}

func hashOf(set *records.Set) spec.RevisionHash {
	return set.Spec.Members.Hash(set.Spec.Template)
}

// olderOps are the records of member 0, of an older revision by which all ran the same, if any differs now.
func olderOps(set *records.Set) []store.Op {
	if len(set.Spec.Members) == 0 {
		return nil
	}
	id, token := member(0), spec.Token{Epoch: 1, Number: 1}
	return []store.Op{
		store.Put(store.RevisionKey(db, "old"), store.Encode(records.Revision{Ref: db, SetUID: "u1", Hash: "old", Number: 0, Template: set.Spec.Template})),
		store.Put(store.MemberKey(id), store.Encode(records.Member{ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Node: "n1", NodeUID: "x", Address: ip, Revision: "old"})),
		store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, LastToken: token, Address: ip, Due: "old"})),
	}
}
