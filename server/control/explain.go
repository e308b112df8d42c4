package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Explain implements proto.ControlServer: no rows when all is as it should be.
func (s sets) Explain(_ context.Context, r *proto.ExplainRequest) (*proto.ExplainResponse, error) {
	ns := namespace(r.GetNamespace())
	ref, member, err := s.target(ns, r.GetName())
	if err != nil {
		return nil, err
	}
	p, ok := s.cfg.Planner.Explain(ref)
	if !ok {
		return nil, notFound(proto.KindSet, ns, string(ref.Name))
	}
	out := &proto.ExplainResponse{}
	rows := explainRows(p)
	s.cfg.Cache.Look(func(v cache.View) {
		for _, m := range movesOf(v, ref) {
			rows = append(rows, &proto.ExplainRow{Member: m.Member, What: fmt.Sprintf("moves from %s to %s (%s)", m.From, m.To, m.Phase), Why: moveWhy(&m)})
		}
	})
	for _, row := range rows {
		if member == "" || row.GetMember() == member {
			out.Rows = append(out.Rows, row)
		}
	}
	return out, nil
}

// target finds the set that a name means: a set of that name, else the set of the
// member of that name.
func (s sets) target(ns spec.Namespace, name string) (ref spec.SetRef, member string, err error) {
	exists := func(ref spec.SetRef) (ok bool) {
		s.cfg.Cache.Look(func(v cache.View) { set := v.Set(ref); ok = set != nil })
		return ok
	}
	ref = spec.SetRef{Namespace: ns, Name: spec.SetName(name)}
	if exists(ref) {
		return ref, "", nil
	}
	set, _, parseErr := spec.ParseMemberName(name)
	ref.Name = set
	if parseErr != nil || !exists(ref) {
		return ref, "", absent("there is no set or member %s in namespace %s", name, ns)
	}
	return ref, name, nil
}

func explainRows(p plan.Plan) []*proto.ExplainRow {
	var rows []*proto.ExplainRow
	add := func(member, what, why string) {
		rows = append(rows, &proto.ExplainRow{Member: member, What: what, Why: why})
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case plan.AddRevision:
			add("", "records a revision", fmt.Sprintf("number %d, %s", a.Revision.Number, a.Revision.Hash))
		case plan.RaiseRevision:
			add("", "goes back to a revision", fmt.Sprintf("%s, now number %d", a.Revision.Hash, a.Revision.Number))
		case plan.PruneRevision:
			add("", "deletes a revision", fmt.Sprintf("number %d, %s: it is unused, and more revisions are kept than revisionHistoryLimit", a.Number, a.Hash))
		case plan.Start:
			add(a.Member.ID.MemberName(), "starts on "+string(a.Member.Node), cmp.Or(a.Text, string(a.Member.Reason)))
		case plan.Stop:
			add(a.ID.MemberName(), "stops", cmp.Or(a.Text, string(a.Reason)))
		case plan.Forget:
			add(a.ID.MemberName(), "has ended", a.Text)
		case plan.MarkReady:
			add(a.Identity.ID.MemberName(), "is recorded as ready once", "its node reported it ready")
		case plan.MarkBootstrapped:
			why := "every first member was ready once"
			if a.Inherited {
				why = "it continues with volumes that an earlier set of this name has used"
			}
			add("", "is recorded as bootstrapped", why)
		case plan.ForgetBootstrapped:
			add("", "is not recorded as bootstrapped any more", "no volume of the earlier set of this name is kept")
		case plan.SetVolumes:
			for _, v := range a.Volumes {
				add(v.ID.MemberName(), fmt.Sprintf("its volume %s: %s", v.Claim, v.Fate), a.Text)
			}
		case plan.DropVolume:
			add(a.ID.MemberName(), fmt.Sprintf("its volume %s is gone", a.Claim), a.Text)
		case plan.RestoreVolume:
			add(a.Volume.ID.MemberName(), fmt.Sprintf("its volume %s: %s", a.Volume.Claim, a.Volume.Fate), a.Text)
		case plan.LeaveVolume:
			add(a.Left.ID.MemberName(), fmt.Sprintf("its volume %s on node %s, which the store does not know, is given up", a.Left.Claim, a.Left.Node), a.Text)
		case plan.VoidRequest:
			add(a.ID.MemberName(), fmt.Sprintf("what was asked of its volume %s is not done", a.Claim), a.Text)
		case plan.BeginMove:
			add(a.Move.ID.MemberName(), "begins its move to "+string(a.Move.To.Node), a.Text)
		case plan.AdvanceMove:
			add(a.Move.ID.MemberName(), fmt.Sprintf("its move continues (%s)", a.Move.Phase), a.Text)
		case plan.FlipMove:
			add(a.Move.ID.MemberName(), "its copied volumes become the volumes", a.Text)
		case plan.BackMove:
			add(a.Move.ID.MemberName(), "its volumes go back to "+string(a.Move.From.Node), a.Text)
		case plan.ForwardMove:
			add(a.Move.ID.MemberName(), "its copies on "+string(a.Move.To.Node)+" become the volumes", a.Text)
		case plan.EndMove:
			add(a.Move.ID.MemberName(), "its move ends", a.Text)
		case plan.VoidMoveRequest:
			add(a.ID.MemberName(), "what was asked about its move is not done", a.Text)
		case plan.PutJobs:
			if a.Text != "" {
				add("", "records a job", a.Text)
			}
		case plan.OrderJob:
			add(a.ID.MemberName(), "runs a job", a.Text)
		case plan.RemoveSet:
			add("", "is removed", "it is being deleted and no member is left")
		}
	}
	for _, b := range p.Blocked {
		if b.Left > 0 {
			b.Text += fmt.Sprintf(" (in %s)", scalar.Duration{Duration: b.Left.Round(time.Second)})
		}
		add(b.ID.MemberName(), "waits", b.Text)
	}
	return rows
}

// moveWhy is why a move is given up, and what it waits for.
func moveWhy(m *moves.ShownMove) string {
	if m.Why == "" {
		return m.Waits
	}
	return fmt.Sprintf("it is given up (%s); %s", m.Why, m.Waits)
}
