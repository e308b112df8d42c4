package sim

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// Moves that go back to a source whose disk died: their members go on with the copies, and how that is judged (SAFETY S12).

// forwardMove has a person want a member to go on with the copy of a move that goes back, or is aborted, as control lets it.
func (w user) forwardMove() bool {
	for _, ref := range w.refs {
		x := w.view().World(ref)
		for _, s := range x.Slots {
			if s.Move == nil || s.Move.Phase != moves.MoveBack && s.Move.Phase != moves.MoveAborting || s.MoveAsked != nil {
				continue
			}
			q := moves.MoveRequest{ID: s.ID, Verb: moves.MoveBegin, To: s.Move.To}
			if plan.MoveRefusal(x, q) == "" {
				w.note("the user wants %s to go on with its copy on %s", s.ID.MemberName(), s.Move.To.Node)
				w.commit(store.Put(store.MoveRequestKey(s.ID), store.Encode(q)))
				return true
			}
		}
	}
	return false
}

// goForward is what an operator does about moves that go back, or are aborted, where the disk died: the member goes on with the copy, or, if that is not
// there either, the host that may have it goes down and is fenced, the volume is said to be lost, and the host comes up again.
func (w operator) goForward() {
	if user(w).forwardMove() {
		return
	}
	for _, ref := range w.refs {
		for vol, s := range volumesOf(w.view().World(ref)) {
			n := w.machine(vol.Node)
			if s.Move == nil || s.Move.Phase != moves.MoveBack && s.Move.Phase != moves.MoveAborting || n == nil || n.there(vol) || !w.judge.volume(vol.UID).destroyed || !w.copyGone(s.Move) {
				continue
			}
			to := w.machineOf(s.Move.To)
			if to == nil || !strings.Contains(plan.Refusal(w.view().World(ref), request(s, vol, records.VerbLost), nil), "may have a copy") {
				continue
			}
			w.loses(s.Move)
			w.giveUpLost()
			w.count("volume said to be lost with its copy")
			for _, server := range w.servers {
				server.feedTo(w.latest())
				if server.term != nil {
					server.turn(ref)
				}
			}
			if !to.power {
				to.powerOn()
			}
			if to.agent == nil {
				to.startAgent()
			}
			return
		}
	}
}

// copyGone: the target of a move does not have all of the copies.
func (w *Cluster) copyGone(m *moves.Move) bool {
	to := w.machineOf(m.To)
	return slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return to.copyOf(m, c) == nil })
}

// forwarded: the batch makes a volume the copy of its move that went back, and ends that.
func (j *judge) forwarded(v cache.View, old, now *records.Volume) bool {
	m := cache.MoveOf(v, now.ID)
	return m != nil && m.Phase == moves.MoveBack && old.Number == now.Number && old.Class == now.Class && old.Fate == now.Fate &&
		slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
			return c.Claim == now.Claim && c.Old == string(old.UID) && c.New == string(now.UID) && old.Node == m.From.Node && now.Node == m.To.Node
		})
}

// goesForward judges that the copies become the volumes only when the source cannot have the old ones, or is off, as a person said; that
// they are whole; and that no life may be on any. From then on their content is what was written.
func (j *judge) goesForward(v cache.View, m *moves.Move) {
	from, to := j.w.machineOf(m.From), j.w.machineOf(m.To)
	name := m.From.Node
	off := v.ModRev(store.SessionKey(name)) == 0 && v.ModRev(store.FenceKey(name)) != 0 || j.w.ownerOf(name) != m.From.UID
	if !off && !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
		return from.placed(m.ID, c, c.Old) == nil || from.lies[records.VolumeID(c.Old)]
	}) {
		j.w.fail("moves", "%s goes on with its copy on %s, and %s has its volumes", m.ID, m.To.Node, name)
	}
	if user := j.user(m.ID, nil); user != "" {
		j.w.fail("moves", "%s goes on with its copy: %s", m.ID, user)
	}
	for _, c := range m.Claims {
		is, l := records.VolumeID(c.New), j.lineage(records.VolumeID(c.New))
		t := to.placed(m.ID, c, c.New)
		if t == nil && !j.excused(to, is) {
			j.w.fail("moves", "%s goes on with its copy, and volume %s is not in its place on %s", m.ID, c.New, m.To.Node)
		}
		j.volume(is).going, j.volume(is).behind = false, false
		if t != nil && (t.files == l.lost || t.files == l.newest) {
			l.back, l.newest = false, t.files
		}
	}
	delete(j.backs, m.Move)
	j.w.count("member goes on with the copy of a move that went back")
}

// isForward: a batch makes the copies of a move that ends the volumes.
func isForward(b store.Batch, m *moves.Move) bool {
	return m.Phase == moves.MoveBack && slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
		v, err := store.Decode[records.Volume](written(b, store.VolumeKey(m.ID, c.Claim)))
		return err == nil && string(v.UID) == c.New
	})
}
