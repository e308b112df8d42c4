package sim

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// mayMove has members of this run be moved. It is a choice of its own, so that runs that were kept before stay as they are.
func (w *Cluster) mayMove() bool {
	w.moves = true
	if len(w.nodes) < 2 {
		w.addNode()
	}
	for _, n := range w.nodes { // they say so in their next hello
		n.endSession("its agent is replaced by one that moves volumes")
	}
	for _, ref := range w.refs {
		user{w}.changeSet(ref, user{w}.keepHere)
	}
	return true
}

// keepHere has a set's members have volumes, mostly such as are on one node.
func (w user) keepHere(s *records.Set) {
	for _, claim := range claimNames {
		at := claimOfSet{s.Ref, claim}
		if w.classOf[at] == rules.SharedClass && !w.chance(4) {
			w.classOf[at] = []string{spec.LocalClass, diskClass}[w.r.IntN(2)]
		}
	}
	claims := &s.Spec.VolumeClaimTemplates
	if len(*claims) == 0 {
		*claims = []spec.ClaimTemplate{{Metadata: spec.ObjectMeta{Name: claimNames[0]}, Spec: claimOf(1000)}}
	}
	for i := range *claims {
		(*claims)[i].Spec.StorageClassName = nil
	}
	w.classify(s)
}

// moveWork has an agent do something of its parts in moves.
func (w *Cluster) moveWork() bool {
	at := w.r.IntN(len(w.nodes))
	for i := range w.nodes {
		if n := w.nodes[(at+i)%len(w.nodes)]; n.agent != nil && !n.stopped && n.moveWork() {
			return true
		}
	}
	return false
}

// moveWork is one round of the agent's mover; false: nothing was due.
func (n *node) moveWork() (did bool) {
	a := n.agent
	if a == nil || !n.w.moves {
		return false
	}
	n.run(func() {
		a.mover.Round(n.w.ctx, func(work func()) { did = true; work() })
	})
	return did
}

// moveOn has everybody who can do what comes next of the moves that there are, while all that is broken stays so.
func (w *Cluster) moveOn() bool {
	did := false
	for range 1 + w.r.IntN(5) {
		if !w.moving() {
			break
		}
		w.advance(time.Second)
		w.moveRound()
		did = true
	}
	return did
}

// moveThrough has moves go on for so long that most come to their end, if what is broken lets them.
func (w *Cluster) moveThrough() bool {
	did := false
	for range 10 + w.r.IntN(50) {
		if !w.moving() {
			break
		}
		w.advance(time.Second)
		_, _, _ = w.someServer().campaign(), w.someNode().start(), w.connect()
		w.moveRound()
		did = true
	}
	return did
}

func (w *Cluster) moveRound() {
	for _, s := range w.servers {
		if s.reached() && !s.stale {
			s.feedTo(w.latest())
		}
		for _, ref := range w.refs {
			if s.up && s.term != nil {
				s.turn(ref)
			}
		}
	}
	for _, n := range w.nodes {
		if x := n.session(); x != nil && !n.stopped && !n.cut && x.s.reached() {
			x.exchange()
		}
	}
	for _, s := range w.servers {
		if s.reached() {
			s.storeReports()
		}
	}
}

// moving: there is a move, or one is asked for.
func (w *Cluster) moving() bool {
	return slices.ContainsFunc(w.refs, func(ref spec.SetRef) bool {
		return slices.ContainsFunc(w.view().World(ref).Slots, func(s plan.Slot) bool { return s.Move != nil || s.MoveAsked != nil })
	})
}

// exchange has a node and its server say what there is to say, and the node do some of it, for as long as the session is there.
func (x *stream) exchange() {
	n := x.n
	x.tell()
	for len(x.down) > 0 && n.session() == x {
		x.receive()
	}
	if n.agent == nil {
		return
	}
	for _, id := range slices.Clone(n.agent.ids) {
		if n.agent != nil {
			n.agent.workers[id].steps(6)
		}
	}
	for range 1 + n.w.r.IntN(3) {
		n.moveWork()
	}
	if n.session() == x {
		x.send()
		x.take(len(x.up))
	}
}

// move has a person ask that a member goes to another node, as control lets it.
func (w user) move() bool {
	x := w.view().World(w.someRef())
	if x.Set == nil || len(x.Slots) == 0 {
		return false
	}
	at := w.r.IntN(1000)
	for i := range x.Slots {
		id, n := x.Slots[(at+i)%len(x.Slots)].ID, w.nodes[(at+i)%len(w.nodes)]
		q := moves.MoveRequest{ID: id, Verb: moves.MoveBegin, To: moves.MoveEnd{Node: n.name, UID: n.uid}}
		if plan.MoveRefusal(x, q) == "" {
			w.note("the user wants %s moved to %s", id.MemberName(), n.name)
			w.commit(store.Put(store.MoveRequestKey(id), store.Encode(q)))
			return true
		}
	}
	return false
}

// abortMove has a person give up a move.
func (w user) abortMove() bool {
	x := w.view().World(w.someRef())
	for _, s := range x.Slots {
		if s.Move == nil || !w.chance(2) {
			continue
		}
		q := moves.MoveRequest{ID: s.ID, Verb: moves.MoveAbort, Move: s.Move.Move}
		if plan.MoveRefusal(x, q) == "" {
			w.note("the user gives up the move of %s", s.ID.MemberName())
			w.commit(store.Put(store.MoveRequestKey(s.ID), store.Encode(q)))
			return true
		}
	}
	return false
}

// drainMove has the members of a node go to others with their volumes.
func (n *node) drainMove() bool {
	for _, x := range n.w.view().Nodes() {
		if x.Node.Name != n.name || x.Node.Drain != nil {
			continue
		}
		record := *x.Node
		record.Cordon, record.Drain = true, &records.Drain{Move: true}
		n.w.note("%s is to be drained, and its members moved", n.name)
		n.w.commit(store.Put(store.NodeKey(n.name), store.Encode(record)))
		return true
	}
	return false
}

// breakOldSeals is the operator's part after a restore: a seal of a move that the store does not know is broken by hand on
// the volume that the store has, and the operator sees to it that all is there that was written.
func (n *node) breakOldSeals() {
	v, did := n.w.view(), false
	for _, name := range allClasses {
		disk := n.classes[name].disk
		if disk == nil || n.classes[name].away() {
			continue
		}
		for _, key := range disk.places() {
			d := disk.dirs[key]
			m, vol := cache.MoveOf(v, key.id), v.Volume(key.id, key.claim)
			if d.tree.seal == "" || m != nil && m.Move == d.tree.seal || vol == nil || vol.UID != d.id || vol.Node != n.name {
				continue
			}
			n.w.judge.lineage(d.id).putByHand()
			d.tree.seal, did = "", true
			n.w.note("the operator breaks the seal of volume %s of %s on %s", d.id, key.id.MemberName(), n.name)
			n.w.count("seal broken by hand after a restore")
		}
	}
	if did {
		n.stopAgent("the operator broke a seal")
		n.startAgent()
	}
}

// sealedFor: the node's disks have a volume of the store that is sealed for good; "": none. What a restored store does not
// know may stay sealed.
func (n *node) sealedFor() string {
	for _, name := range allClasses {
		disk := n.classes[name].disk
		if disk == nil {
			continue
		}
		for _, key := range disk.places() {
			d, vol := disk.dirs[key], n.w.view().Volume(key.id, key.claim)
			if d.tree.seal != "" && (n.w.restores == 0 || vol != nil && vol.UID == d.id) {
				return "volume " + string(d.id) + " of " + key.id.MemberName() + " on " + string(n.name) + " stays sealed for the move " + string(d.tree.seal)
			}
		}
	}
	return ""
}

// sealed is sealedFor of all machines that the store knows.
func (w *Cluster) sealed() string {
	for _, n := range w.nodes {
		if why := n.sealedFor(); why != "" && !n.removed && w.ownerOf(n.name) == n.uid {
			return why
		}
	}
	return ""
}

// machineOf is the one at an end of a move; nil: there is none.
func (w *Cluster) machineOf(end moves.MoveEnd) *node {
	if i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.uid == end.UID }); i >= 0 {
		return w.nodes[i]
	}
	return nil
}
