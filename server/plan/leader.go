package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
)

// Leader is the ordinal of the member that leads, as nodes and members see it too (records.Leader);
// records.NoOrdinal: none does. It is what members say of themselves: it orders what may be done in any order.
func Leader(slots []Slot, judge *proof.Judge) int {
	var peers []records.Peer
	for i := range slots {
		if p := Claimed(&slots[i], judge); p.Leads {
			peers = append(peers, p)
		}
	}
	ordinal, _ := records.Leader(peers)
	return ordinal
}

// Claimed is an identity as a peer, with what its life says of itself and whether it is ready, and nothing else.
func Claimed(slot *Slot, judge *proof.Judge) records.Peer {
	p := records.Peer{Ordinal: slot.ID.Ordinal}
	if m, r := slot.Member, slot.Report; m != nil && r != nil && r.Token == m.Token {
		p.Ready = judge.EffectiveReady(m, r)
		p.Note, p.Leads, p.Term = r.Claim.Note, r.Claim.Leads, r.Claim.Term
	}
	return p
}
