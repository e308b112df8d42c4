package plants

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
)

// movePlants are about moves of members with their volumes (SAFETY S12).
var movePlants = []Plant{
	{Name: "arrives-too-early", Judges: "moves", ArrivesTooEarly: true, Blind: "progress", Often: moving},
	{Name: "seals-nothing", Judges: "moves", SealsNothing: true, Often: moving},
	{Name: "says-sums-unread", Judges: "moves", SaysSumsUnread: true, Often: moving},
	{Name: "breaks-seals", Judges: "moves", BreaksSeals: true, Often: moving},
	{Name: "forgets-seals", Judges: "moves", ForgetsSeals: true, Blind: "leave, volumes, progress", Often: append([]string{"crash-agent"}, moving...)},
	{Name: "seals-under-lives", Rare: true, Judges: "moves", SealsUnderLives: true, Often: append(append([]string{}, restores...), moving...)},
	{Name: "keeps-old-reports", Rare: true, Judges: "moves, progress", KeepsOldReports: true, Often: append(append([]string{}, restores...), moving...)},
	{Name: "says-back-what-is-sealed", Judges: "moves", SaysBackSealed: true, Often: []string{"move", "lose-target", "back-move"}},
	{Name: "gives-up-the-old-copy-early", Judges: "moves", Say: endsFlipped, Often: moving},
	{Name: "never-ends-a-move", Judges: "progress", Say: without[plan.EndMove], Blind: rule9, Often: moving},
	{Name: "never-aborts", Judges: "progress, reasons", Say: neverAborts, Blind: rule9, Often: moving},
	{Name: "stops-for-a-move-past-the-budget", Judges: "budget, order, moves", Say: stopsAtOnce, Often: moving},
}

var moving = []string{"move", "move-on", "abort-move", "drain-move"}

// endsFlipped ends each move that is flipped before its volumes have arrived.
func endsFlipped(w plan.World, p *plan.Plan) {
	for _, s := range w.Slots {
		m := s.Move
		if m == nil || m.Phase != moves.MoveFlipped || w.Set == nil || len(p.Actions) > 0 {
			continue
		}
		end := plan.EndMove{Move: *m, Text: "plant"}
		for _, c := range m.Claims {
			end.Left = append(end.Left, records.VolumeReport{
				ID: s.ID, Claim: c.Claim, Volume: records.VolumeID(c.Old), Number: c.Number, Class: c.Class, Node: m.From.Node, State: records.VolumeLeft, SizeBytes: c.SizeBytes,
			})
		}
		p.Actions = append(p.Actions, end)
	}
}

// neverAborts leaves out that moves are aborted.
func neverAborts(_ plan.World, p *plan.Plan) {
	kept := p.Actions[:0:0]
	for _, a := range p.Actions {
		if x, is := a.(plan.AdvanceMove); !is || x.Move.Phase != moves.MoveAborting {
			kept = append(kept, a)
		}
	}
	p.Actions = kept
}

// stopsAtOnce stops each member whose volumes are copied, whatever else of its set is down, or the target says.
func stopsAtOnce(w plan.World, p *plan.Plan) {
	for _, s := range w.Slots {
		if s.Move == nil || s.Move.Phase != moves.MoveCopying || s.Member == nil || s.Member.Goal != records.GoalRun || s.Report == nil || !s.Report.Ready || len(p.Actions) > 0 {
			continue
		}
		m := *s.Move
		m.Phase, m.Stopped = moves.MoveStopping, s.Member.Token
		p.Actions = append(p.Actions, plan.Stop{ID: s.ID, Token: s.Member.Token, Reason: records.ReasonMove, Move: &m, Text: "plant"})
	}
}
