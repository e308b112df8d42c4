package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec/causes"
)

// Volumes that a node has in their place and the store does not know (SAFETY S11): it was restored from before they were made, or before
// they were moved there; or they were declared lost, and their disk is back.

// rival reports whether a volume that the store does not know may hold newer data than what the store has of its claim: it has a later
// number, or the same one, which a move keeps; but for the copy that a move sealed for the node where the store has the volume.
func (m *memberFacts) rival(u *UnknownVolume) bool {
	v := m.Volumes[u.Claim]
	if v == nil {
		return m.Identity == nil || u.Number >= m.Identity.VolumeNumbers[u.Claim]
	}
	moved := m.Move != nil && slices.ContainsFunc(m.Move.Claims, func(c moves.MoveClaim) bool { return c.Old == string(u.Volume) || c.New == string(u.Volume) })
	return v.UID != u.Volume && !moved && u.Number >= v.Number && (u.Number > v.Number || u.SealedFor == "" || u.SealedFor != v.Node)
}

// unknowns has the rules about volumes that the store does not know.
type unknowns struct{ volumes }

// rivals are those of the claims that the set has.
func (s unknowns) rivals(t *memberState) (list []*UnknownVolume) {
	for i := range t.Unknown {
		if u := &t.Unknown[i]; s.claimTemplate(u.Claim) != nil && t.rival(u) {
			list = append(list, u)
		}
	}
	return list
}

// heldByRival says why no life of a member starts: it would miss data that a node has; nil: no node says so.
func (s unknowns) heldByRival(t *memberState) *place.Refusal {
	list := s.rivals(t)
	if len(list) == 0 {
		return nil
	}
	u, than := list[0], "and of which the store has none"
	if v := t.Volumes[u.Claim]; v != nil {
		than = fmt.Sprintf("and which may be newer than its volume on node %s", v.Node)
	}
	name := records.VolumeName(t.ID, u.Claim)
	return &place.Refusal{Reason: causes.BlockedUnknown, Text: fmt.Sprintf(
		"node %s has %s (%s, number %d), which the store does not know, %s; to continue with it: stead volume restore %s --node %s; to give it up: stead volume reclaim %s --node %s",
		u.Node, name, u.Volume, u.Number, than, name, u.Node, name, u.Node)}
}

// unknown is the volume that a request is about, which its node has and the store does not know; nil: it is about another.
func (m *memberFacts) unknown(q *records.VolumeRequest) *UnknownVolume {
	at := slices.IndexFunc(m.Unknown, func(u UnknownVolume) bool {
		return u.Node == q.Node && u.Claim == q.Claim && u.Volume == q.Volume
	})
	if v := m.Volumes[q.Claim]; at < 0 || q.Node == "" || v != nil && v.UID == q.Volume {
		return nil
	}
	return &m.Unknown[at]
}

// whyNotUnknown says why a volume that the store does not know is not made the member's, or given up; "": it is.
func (s unknowns) whyNotUnknown(t *memberState, u *UnknownVolume, q *records.VolumeRequest) string {
	switch n := s.node(u.Node); {
	case t.Move != nil:
		return fmt.Sprintf("%s is being moved; wait for that", t.ID.MemberName())
	case len(t.Strays) > 0:
		return t.strayText() + "; wait until that has ended"
	case n == nil:
		return fmt.Sprintf("node %s is not known", u.Node)
	case q.Verb == records.VerbReclaim:
		return ""
	case !n.Connected() || n.Facts == nil || n.Facts.Epoch != s.world.Epoch:
		return fmt.Sprintf("node %s is unreachable; start its agent", u.Node)
	case u.Unseen:
		return fmt.Sprintf("the disk of its class %s is not there on node %s; mount it, and restart the agent", u.Class, u.Node)
	case u.SealedFor != "":
		return fmt.Sprintf("a move sealed it for node %s, where its copy may be newer; start the agent of that node", u.SealedFor)
	case !t.endedByWord():
		return s.uses(t)
	}
	for i := range t.Unknown {
		if o := &t.Unknown[i]; o.Claim == u.Claim && o.Volume != u.Volume && o.Number >= u.Number && t.rival(o) {
			return fmt.Sprintf("node %s has another one that the store does not know (%s, number %d), and which of both is newer is not known; look at both, and give up the older one first: stead volume reclaim %s --node %s",
				o.Node, o.Volume, o.Number, records.VolumeName(t.ID, o.Claim), o.Node)
		}
	}
	return s.whyNotInstead(t, u)
}

// whyNotInstead says why a volume that the store does not know does not take the place of that of which the store has a record; "": it
// does, for the node of that says in this epoch that it has it not, or sealed.
func (s unknowns) whyNotInstead(t *memberState, u *UnknownVolume) string {
	for _, claim := range inOrder(t.Volumes) {
		v := t.Volumes[claim]
		comes := slices.ContainsFunc(t.Unknown, func(o UnknownVolume) bool { return o.Claim == claim && o.Node == u.Node })
		if claim != u.Claim && !v.Shared && v.Node != u.Node && !comes {
			return fmt.Sprintf("it is on node %s, and the volume of %s for the claim %s on node %s: give that up first, for a member has all on one node",
				u.Node, t.ID.MemberName(), claim, v.Node)
		}
	}
	v := t.Volumes[u.Claim]
	if v == nil {
		return ""
	}
	n, name := s.node(v.Node), records.VolumeName(t.ID, u.Claim)
	switch {
	case !t.rival(u):
		return fmt.Sprintf("the store has a newer one, number %d on node %s", v.Number, v.Node)
	case v.Fate != records.FateKeep || v.Shared:
		return fmt.Sprintf("%s has another volume for the claim %s, %s (%s); give that up first", t.ID.MemberName(), u.Claim, v.UID, v.Fate)
	case n == nil || n.Facts == nil || n.Facts.UID != n.Node.UID || n.Facts.Epoch != s.world.Epoch || !n.Facts.ListsVolumes:
		return fmt.Sprintf("whether node %s has the one that the store knows (%s) is not known, so that it is not known which is newer; start the agent of node %s; if it is lost for good: stead node fence %s --i-have-powered-off, and stead volume reclaim %s --lost",
			v.Node, v.UID, v.Node, v.Node, name)
	case !slices.Contains(n.Facts.AbsentVolumes, v.UID):
		return fmt.Sprintf("node %s has the one that the store knows (%s) in its place, or its disk is not there, so that it is not known which is newer; look at both, and give up the older one: stead volume reclaim %s --node %s gives up that on node %s; the other one can be given up while the set is deleted",
			v.Node, v.UID, name, u.Node, u.Node)
	}
	return ""
}

// doUnknown does what a person asks about a volume that the store does not know.
func (s unknowns) doUnknown(t *memberState, u *UnknownVolume, q *records.VolumeRequest) {
	c := moves.MoveClaim{Claim: u.Claim, Number: u.Number, Class: u.Class}
	if q.Verb == records.VerbReclaim {
		left := leftOf(t, c, string(u.Volume), u.Node)
		if q.Trash != nil {
			left.Left = *q.Trash
		}
		s.act(LeaveVolume{Left: left, Text: fmt.Sprintf("node %s has it, the store did not know it, and it is given up on request", u.Node)})
		t.become(t.withoutAsked(u.Claim).withLeft(u.Node))
		return
	}
	said := &records.VolumeReport{Number: u.Number, Class: u.Class, Node: u.Node}
	var left []records.VolumeReport
	if old := t.Volumes[u.Claim]; old != nil {
		said.SizeBytes = old.SizeBytes
		if s.node(old.Node) != nil {
			c.Number, c.Class, c.SizeBytes = old.Number, old.Class, old.SizeBytes
			left = append(left, leftOf(t, c, string(old.UID), old.Node))
		}
	}
	if c := s.claimTemplate(u.Claim); c != nil {
		said.SizeBytes = max(said.SizeBytes, sizeOf(c))
	}
	a := s.restored(t, q, said)
	a.Unknown, a.Left, a.Text = true, left, fmt.Sprintf("node %s has it, the store did not know it, and it is the volume of %s on request", u.Node, t.ID.MemberName())
	s.comesBack(t, a)
	for range left {
		t.become(t.withLeft(left[0].Node))
	}
}
