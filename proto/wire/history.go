package wire

import (
	"fmt"
	"time"

	goproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SetHistory converts to the wire, marshalled.
func SetHistory(h *records.History) ([]byte, error) {
	m := &proto.SetHistory{Set: SetName(h.Ref)}
	for i := range h.Changes {
		c := &h.Changes[i]
		at, err := c.At.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("encode a history of set %s: %w", h.Ref, err)
		}
		out := &proto.HistoryChange{
			Id: SetChange(c.ID()), Kind: string(c.Kind), Ordinal: int32(c.Ordinal), Token: c.Token, Reason: c.Reason,
			Revision: string(c.Revision), Replicas: int32(c.Replicas), At: at,
		}
		if c.Member != memberName(h.Ref, c.Ordinal) {
			out.Member = c.Member
		}
		m.Changes = append(m.Changes, out)
	}
	return goproto.Marshal(m)
}

// ToHistories is the inverse of SetHistory, for each of docs.
func ToHistories(docs [][]byte) ([]records.History, error) {
	out := make([]records.History, len(docs))
	for i, doc := range docs {
		var m proto.SetHistory
		if err := goproto.Unmarshal(doc, &m); err != nil {
			return nil, fmt.Errorf("decode a history: %w", err)
		}
		h := &out[i]
		h.Ref = ToSetRef(m.GetSet())
		for _, c := range m.GetChanges() {
			var at time.Time
			if err := at.UnmarshalBinary(c.GetAt()); err != nil {
				return nil, fmt.Errorf("decode a history of set %s: %w", h.Ref, err)
			}
			member := c.GetMember()
			if member == "" {
				member = memberName(h.Ref, int(c.GetOrdinal()))
			}
			h.Changes = append(h.Changes, records.Change{
				Epoch: c.GetId().GetEpoch(), Number: c.GetId().GetNumber(), Kind: records.ChangeKind(c.GetKind()), Member: member,
				Ordinal: int(c.GetOrdinal()), Token: c.GetToken(), Reason: c.GetReason(),
				Revision: spec.RevisionHash(c.GetRevision()), Replicas: int(c.GetReplicas()), At: at,
			})
		}
	}
	return out, nil
}

// memberName is the name of a member; "" of none.
func memberName(ref spec.SetRef, ordinal int) string {
	if ordinal == records.NoOrdinal {
		return ""
	}
	return identityIn(ref, ordinal).MemberName()
}
