package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

// rounds is how long everybody may take, at one second each at first, to reach what
// is asked once nothing fails any more.
const rounds = 600

// settle ends all faults and asks for what can be reached: a good template, a rolling
// update of all. Then the sets must be as asked in a bounded time.
func (w *Cluster) settle() bool {
	w.judge.settling = true
	defer func() { w.judge.settling = false }()
	w.heal()
	behind := 0 // rounds in which nodes alone were not as they are to be
	for round := range rounds {
		operator{w}.giveUpLost()
		operator{w}.takeBackLost()
		operator{w}.goForward()
		operator{w}.decideJobs()
		w.round(round)
		if w.over() || w.cancelled() {
			return true
		}
		why := w.unfinished()
		if why == "" {
			why = cmp.Or(w.missed(), w.sealed())
			behind++
		}
		if why == "" {
			w.count("settled")
			return true
		}
		if round == rounds-1 || behind > 20 {
			w.fail("progress", "faults are over, and %d rounds later %s", round, why)
			return true
		}
	}
	return true
}

// heal ends all faults.
func (w *Cluster) heal() {
	for _, s := range w.servers {
		s.cut = false
		if !s.up && w.q == nil {
			s.start()
		}
		s.hung = false
		if s.up {
			s.storeLink.crashIn, s.storeLink.unknown, s.storeLink.late = 0, false, false
		}
	}
	if w.q != nil {
		w.q.heal()
	}
	for _, n := range w.nodes {
		n.cut, n.stopped, n.disk.failIn, n.runtimeDown = false, false, 0, time.Time{}
		clear(n.slow)
		if n.shuttingDown() {
			n.powerOff()
		}
		if !n.power {
			n.powerOn()
		}
		if n.agent == nil {
			n.startAgent()
		}
		for _, p := range n.places {
			for _, b := range p.boxes {
				b.sick = false
			}
		}
		n.replaceDisk()
		n.mount()
		if n.noJobs || n.noChange {
			n.noJobs, n.noChange = false, false
			n.endSession("its agent is upgraded")
		}
		if len(n.lies) > 0 {
			n.endSession("it lies no more")
		}
		n.setCordon(func(bool) bool { return false })
	}
	for _, ref := range w.refs {
		w.mend(ref)
	}
}

// mend asks for a template that works, for all members.
func (w *Cluster) mend(ref spec.SetRef) {
	old, rev := w.set(ref)
	if old == nil || old.Deleting {
		return
	}
	user{w}.apply(old, rev, func(set *records.Set) {
		c := &set.Spec.Template.Spec.Containers[0]
		if !strings.HasPrefix(c.Image, "good") {
			c.Image = images[w.r.IntN(4)]
		}
		mendParts(&set.Spec.Template.Spec)
		w.mendLeave(set)
		if w.judge.settling {
			mendJobs(set)
		}
		w.mendMounts(set)
		mendDifferences(set)
		set.Spec.UpdateStrategy = spec.UpdateStrategy{RollingUpdate: set.Spec.UpdateStrategy.RollingUpdate, InPlace: set.Spec.UpdateStrategy.InPlace}
		if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
			r.Partition, r.OnFailure = nil, ""
		}
		set.Spec.Busy = &spec.Busy{MaxSeconds: new(int32(60))}
		set.Paused, set.Spec.Disruption, set.Spec.ProgressDeadlineSeconds = false, nil, nil
		s := w.view().Status(ref)
		if s != nil && s.RolledBackFrom == set.Spec.Members.Hash(set.Template()) { // what was given up is not tried again
			c.Image = images[(slices.Index(images, c.Image)+1)%4]
		}
	})
}

// round has everybody do all they have to do, once.
func (w *Cluster) round(n int) {
	d := time.Second
	if n > 60 {
		d = 10 * time.Second
	}
	for range d / time.Second { // leases are renewed in time
		w.advance(time.Second)
	}
	w.look()
	operator{w}.operate()
	led := false
	if w.q != nil {
		w.q.settle()
	}
	for _, s := range w.servers {
		s.feedTo(w.latest())
		if s.term != nil {
			s.noticeLoss()
		}
		led = led || s.term != nil
	}
	for _, s := range w.servers {
		if !led {
			led = s.campaign()
		}
		if s.term != nil {
			for _, ref := range w.withClaims() {
				w.Steps++
				s.turn(ref)
			}
		}
	}
	for _, n := range w.nodes {
		w.exchange(n)
	}
	for _, s := range w.servers {
		w.Steps++
		s.feedTo(w.latest())
		s.storeReports()
	}
}

// upServer is one that serves; nil: none does.
func (w *Cluster) upServer() *server {
	at := w.r.IntN(len(w.servers))
	for i := range w.servers {
		if s := w.servers[(at+i)%len(w.servers)]; s.up {
			return s
		}
	}
	return nil
}

// exchange has a node and its server say all they have to say.
func (w *Cluster) exchange(n *node) {
	if n.session() == nil {
		if s := w.upServer(); s != nil {
			n.connect(s)
		}
	}
	n.resolve(w.known)
	if x := n.session(); x != nil {
		w.Steps++
		x.s.feedTo(w.latest())
		x.tell()
		for len(x.down) > 0 && n.session() == x {
			w.Steps++
			x.receive()
		}
	}
	for _, id := range slices.Clone(n.agent.ids) {
		w.Steps += n.agent.workers[id].steps(40)
	}
	for n.reclaim() {
		w.Steps++
	}
	for range 50 {
		if !n.moveWork() {
			break
		}
		w.Steps++
	}
	if x := n.session(); x != nil {
		x.send()
		x.take(len(x.up))
	}
}

// known: the store has the life, or has had a newer one.
func (w *Cluster) known(id spec.Identity, token spec.Token) bool {
	m := w.view().Member(id)
	rec := w.view().Identity(id)
	return m != nil && m.Token == token || rec != nil && rec.LastToken.Compare(token) > 0
}

// unfinished says what is not as it is asked; "": all is.
func (w *Cluster) unfinished() string {
	for _, ref := range w.withClaims() {
		if why := lacking(w.view().World(ref)); why != "" {
			return why
		}
	}
	return ""
}

// lacking says what a set lacks of what is asked.
func lacking(x plan.World) string {
	lives := 0
	for i := range x.Slots {
		s := &x.Slots[i]
		if s.Member != nil {
			lives++
		}
		if len(s.Asked) > 0 {
			return "what was asked of a volume of " + s.ID.MemberName() + " is not done: " + moveSaid(x, s) + told(x)
		}
		if s.Move != nil || s.MoveAsked != nil {
			return "the move of " + s.ID.MemberName() + " does not end: " + moveSaid(x, s) + told(x)
		}
		for _, v := range s.Volumes {
			if v.Fate.Ordered() || v.Fate == records.FateDelete && s.Member == nil {
				return fmt.Sprintf("volume %s of %s is to go and stays: %s", v.UID, s.ID.MemberName(), told(x))
			}
		}
	}
	if x.Claim != nil && x.Claim.Record != nil && x.Claim.Record.Deleting {
		return "the claim that is being deleted stays: " + told(x)
	}
	if x.Set == nil || x.Set.Deleting {
		if x.Set != nil || lives > 0 {
			return "the deleted set is not gone: " + told(x)
		}
		return ""
	}
	r := rules.Read(x)
	if lives != len(r.Wanted) {
		return "there are too many or too few lives: " + told(x)
	}
	for _, o := range r.Wanted {
		if !r.Available(o) || r.Slot(o).Member.Revision != x.TemplateHash {
			return r.Name(o) + " is not available on the asked revision: " + told(x)
		}
	}
	if why := lackingJobs(x, r); why != "" {
		return why + ": " + told(x)
	}
	if x.Status != nil && x.Status.ServiceName != x.Set.Service() {
		return "the rename is not complete: " + told(x)
	}
	if x.Status == nil || x.Status.CurrentRevision != x.TemplateHash || !x.Status.CurrentCompleted && lives > 0 {
		return "the update is not complete: " + told(x)
	}
	return ""
}

// moveSaid is how far a move has come, and what is said of it.
func moveSaid(x plan.World, s *plan.Slot) (text string) {
	if s.Move == nil {
		return ""
	}
	for claim, v := range s.Volumes {
		text += fmt.Sprintf("volume %s of %s on %s is %s, ", v.UID, claim, v.Node, v.Fate)
	}
	for _, n := range x.Nodes {
		for _, r := range n.Facts.MoveReports {
			text += fmt.Sprintf("%s says as %s of %s in epoch %d: %s %s, ", n.Node.Name, r.Role, r.ID.MemberName(), n.Facts.Epoch, r.State, r.Error)
		}
	}
	return fmt.Sprintf("%s from %s to %s of epoch %d, %s", s.Move.Phase, s.Move.From.Node, s.Move.To.Node, s.Move.Epoch, text)
}

// told is what the planner says now.
func told(x plan.World) string {
	x.VolumeID = func() records.VolumeID { return "" }
	p := plan.Next(x)
	var words []string
	for _, a := range p.Actions {
		words = append(words, rules.ActionName(a))
	}
	for _, b := range p.Blocked {
		words = append(words, b.ID.MemberName()+" "+string(b.Reason)+" ("+b.Text+")")
	}
	return strings.Join(words, "; ")
}
