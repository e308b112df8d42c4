package engine

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// unknownOps are the records of a volume that n2 has and the store does not know.
func (st *stage) unknownOps(facts records.NodeFacts) []store.Op {
	if !st.unknown {
		return nil
	}
	facts.ListsVolumes, facts.AbsentVolumes = true, []records.VolumeID{"v"}
	return []store.Op{
		store.Put(store.FactsKey("n1"), store.Encode(facts)),
		store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})), store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "y"})),
		store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "y", Epoch: 1, ListsVolumes: true,
			UnknownVolumes: []records.HostVolume{{ID: member(0), Claim: "data", Volume: "w", Number: 1, Class: "local"}}})),
	}
}
