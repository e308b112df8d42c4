package plants

import (
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// All are the plants there are, each with the judges of which one must find it.
var All = slices.Concat(general, storagePlants, partPlants, claimPlants, movePlants, leavePlants, jobPlants, differencePlants, changePlants, serverPlants)

var general = []Plant{
	// SAFETY S1, S2, S8, S13: what agents and restores must keep.
	{Name: "forgetful-agent", Judges: "one life, token once, absence", ForgetfulAgent: true, Blind: "progress, startup"},
	{Name: "absence-is-an-order", Judges: "absence", AbsenceIsAnOrder: true, Often: backs},
	{Name: "restore-keeps-the-epoch", Judges: "continuity", NoticesNothing: true, Blind: "progress", Often: backs},
	{Name: "opens-after-a-restore", Rare: true, Judges: "one life, token once, volumes", OpensAfterRestore: true},
	{Name: "restore-decides-at-once", Judges: "count", See: EveryoneSaid, Blind: rule9, Often: restores},
	{Name: "counts-the-backup-only", Judges: "count", CountsTheBackup: true, Often: joins},
	{Name: "strays-not-compared", Rare: true, Judges: "strays", Unguarded: []string{store.HellosKey}, CountsTheBackup: true, Blind: "count", Often: joins},
	{Name: "told-too-early", Judges: "one life, reports", ToldTooEarly: true},
	{Name: "late-start-lands", Rare: true, Judges: "bound, one life, token once, progress", LateStartLands: true, Often: []string{"land", "user"}},
	{Name: "deaf-to-old-tokens", Judges: "progress", DeafToOldTokens: true, Often: restores},
	{Name: "tells-available-once", Rare: true, Judges: "progress", AvailableOnce: true, Often: []string{"user", "crash-agent"}},
	{Name: "erases-early", Judges: "volumes, claims, shares", ErasesEarly: true, Often: volumes},
	{Name: "takes-any-volume", Judges: "volumes, claims, shares", TakesAnyVolume: true, Often: volumes},
	{Name: "says-gone", Judges: "volumes, claims, shares", SaysGone: true, Often: volumes},
	// S3, S5, S6, S14: what guarded lives rest on.
	{Name: "confirmed-by-arrival", Rare: true, Judges: "bound, one life", ConfirmedByArrival: true, Often: silences},
	{Name: "pong-from-memory", Judges: "bound, one life", PongFromMemory: true, Often: silences},
	{Name: "kills-once", Rare: true, Judges: "bound, one life", KillsOnce: true, Often: append([]string{"sick", "crash-agent"}, silences...)},
	{Name: "starts-unguarded", Judges: "bound, one life, proof", StartsUnguarded: true, Often: silences},
	{Name: "forgets-its-deadline", Judges: "bound, one life", ForgetsDeadline: true, Often: silences},
	{Name: "kills-too-early", Judges: "hold", KillsEarly: true, Often: silences},
	{Name: "waits-for-no-margin", Judges: "proof, reasons", See: NoMargin, Often: silences},
	{Name: "counts-from-its-start", Judges: "proof, reasons, order, due", See: LongGone, Often: silences},
	{Name: "replaces-while-most-are-gone", Judges: "proof, reasons", See: moreNodes, Often: silences},
	{Name: "replaces-what-is-held", Judges: "proof, reasons", See: eachSlot(allGuarded), Often: silences},
	{Name: "guards-nothing", Judges: "bound", Say: each(func(_ plan.World, a *plan.Start) { a.Member.Bound = 0 })},
	{Name: "fences-what-is-on", Judges: "one life", FencesWhatIsOn: true, Often: fences},
	// S7: what transactions compare.
	{Name: "stale-leader-writes", Judges: "leader", Unguarded: []string{"leader"}},
	{Name: "lives-not-compared", Judges: "tokens, proof, volumes, one life, addresses, churn", Unguarded: []string{"leader", "members/", "identities/", "reports/", "volumes/", "addresses/"}, Blind: "leader", Often: []string{"hang-server", "campaign"}},
	// The planner: proof, order, budget, revisions, volumes, words.
	{Name: "starts-without-proof", Judges: "proof, reasons", See: ForgetSilent},
	{Name: "ignores-strays", Judges: "strays, volumes, moves", See: eachSlot(func(_ *plan.World, s *plan.Slot) { s.Strays = nil }), Often: joins},
	{Name: "believes-silent-nodes", Judges: "placement, budget, order, reasons, drain", See: Silent(everyoneLives)},
	{Name: "believes-any-session", Judges: "budget, order, reasons, completion", See: eachSlot(whateverSession)},
	{Name: "takes-lapsed-for-broken", Judges: "cure", See: eachSlot(forgetReady), Often: []string{"lapse", "deadline", "wait"}},
	{Name: "waits-for-no-lapse", Judges: "cure", See: func(w *plan.World) {
		outages := map[plan.Outage]time.Duration{}
		for _, o := range plan.Next(*w).Outages {
			outages[o] = time.Hour
		}
		w.Outages = outages
	}, Often: []string{"lapse", "deadline", "wait"}},
	{Name: "ignores-order", Judges: "order", See: setChange(func(s *records.Set) { s.Spec.PodManagementPolicy = spec.Parallel })},
	{Name: "ignores-the-budget", Judges: "budget", See: rollingUpdate(func(r *spec.RollingUpdate) { r.MaxUnavailable = &scalar.IntOrPercent{Number: 100} }), Blind: rule9},
	{Name: "ignores-the-floor", Judges: "floor", See: setChange(func(s *records.Set) { s.Spec.Disruption = nil }), Often: []string{"floor", "user"}},
	{Name: "ignores-the-partition", Rare: true, Judges: "churn, due", See: rollingUpdate(func(r *spec.RollingUpdate) { r.Partition = nil }), Blind: rule9},
	{Name: "ignores-the-pause", Judges: "churn, due", See: setChange(func(s *records.Set) { s.Paused = false }), Blind: rule9},
	{Name: "ignores-on-delete", Judges: "churn, due", See: notOfType(spec.OnDeleteStrategy), Blind: rule9},
	{Name: "stops-before-the-images", Judges: "images", See: nobodyPrepares, Often: []string{"user"}},
	{Name: "forgets-what-is-due", Judges: "due", See: eachSlot(forgetDue)},
	{Name: "takes-the-leader-in-its-turn", Judges: "leader last", See: rollingUpdate(func(r *spec.RollingUpdate) { r.Order = "" }), Often: says, Blind: rule9},
	{Name: "stops-who-is-busy", Judges: "busy", See: eachSlot(forgetBusy), Often: says, Blind: rule9},
	{Name: "waits-for-the-busy-without-end", Judges: "progress, busy", See: eachSlot(busyOfLate), Often: says, Blind: rule9 + ", busy"},
	{Name: "lowest-first", Judges: "order, churn, floor, cure", Say: each(lowestFirst)},
	{Name: "shuts-down-at-once", Judges: "order, budget", See: shutsDownAtOnce, Often: []string{"shut-down", "reboot"}},
	{Name: "shuts-down-a-host-that-stays", Judges: "drain", See: shutsDownAll, Often: []string{"drain", "cordon"}},
	{Name: "drains-past-the-budget", Judges: "budget", See: drainsAtOnce, Often: []string{"drain", "cordon"}},
	{Name: "churns", Judges: "churn, budget", Say: churn},
	{Name: "forgets-the-data", Judges: "data", See: eachSlot(forgetData), Often: volumes},
	{Name: "makes-volumes-anew", Judges: "volumes, claims, shares", See: eachSlot(func(_ *plan.World, s *plan.Slot) { s.Volumes = nil })},
	{Name: "forgets-the-fate", Judges: "volumes, claims, shares", Say: each(func(_ plan.World, a *plan.Stop) { a.Volumes = nil }), Often: volumes},
	{Name: "forgets-one-that-is-over", Judges: "volumes, claims, shares", Say: forgetOver, Often: volumes},
	{Name: "decides-for-all-at-once", Judges: "volumes, claims, shares", See: setChange(func(s *records.Set) {
		s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: spec.Delete, WhenDeleted: spec.Delete}
	}), Often: volumes},
	{Name: "confuses-the-policies", Judges: "volumes, claims, shares", See: setChange(func(s *records.Set) {
		if p := s.Spec.Retention; p != nil {
			s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: p.WhenDeleted, WhenDeleted: p.WhenScaled}
		}
	}), Often: volumes},
	{Name: "gives-up-what-is-wanted", Judges: "volumes, claims, shares", Say: eachFate(func(w plan.World, v *records.Volume) {
		if v.Fate == records.FateKeep && w.Set != nil {
			v.Fate = records.FateDelete
		}
	}), Often: volumes, Blind: "progress"},
	{Name: "gives-up-at-once", Judges: "volumes, claims, shares", Say: eachFate(func(_ plan.World, v *records.Volume) {
		if v.Fate == records.FateDelete {
			v.Fate = records.FateReclaiming
		}
	}), Often: volumes, Blind: "progress"},
	{Name: "takes-a-volume-back", Judges: "volumes, claims, shares", See: func(w *plan.World) { everyVolume(w, nothingReclaimed, func(*records.MemberVolume) {}) }, Often: volumes, Blind: "progress"},
	{Name: "shrinks-a-volume", Judges: "volumes, claims, shares", Say: eachFate(func(_ plan.World, v *records.Volume) { v.SizeBytes = 0 }), Often: volumes},
	{Name: "uses-a-volume-id-again", Judges: "volumes, claims, shares", OneVolumeID: true, Often: volumes},
	{Name: "never-gives-up", Judges: "progress", Say: without[plan.SetVolumes], Often: volumes},
	{Name: "never-drops", Judges: "progress", Say: without[plan.DropVolume], Often: volumes},
	{Name: "never-stalls", Judges: "deadline", See: func(w *plan.World) { w.Standstill = 0 }, Often: rollouts},
	{Name: "stalls-too-soon", Judges: "deadline", See: func(w *plan.World) { w.Standstill += 5 * time.Second }, Often: rollouts},
	{Name: "forgets-how-far-it-came", Judges: "deadline", See: func(w *plan.World) { w.Reached = plan.Progress{} }, Often: rollouts},
	{Name: "stalls-while-paused", Judges: "deadline", Say: func(w plan.World, p *plan.Plan) {
		if w.Set != nil && w.Set.Paused && len(p.Status.Conditions) > 2 {
			p.Status.Conditions[2].Status = "True"
		}
	}, Often: rollouts},
	{Name: "rolls-back-unasked", Judges: "rollback", See: rollingUpdate(func(r *spec.RollingUpdate) { r.OnFailure = spec.OnFailureRollback }), Often: rollouts},
	{Name: "never-rolls-back", Judges: "rollback", See: rollingUpdate(func(r *spec.RollingUpdate) { r.OnFailure = "" }), Often: rollouts},
	{Name: "rolls-back-to-anything", Judges: "completion, rollback", See: statusChange(func(s *records.SetStatus) { s.CurrentCompleted = true }), Often: rollouts},
	{Name: "tries-again", Judges: "rollback, deadline, due, churn", See: statusChange(func(s *records.SetStatus) { s.RolledBackFrom = "" }), Often: rollouts},
	{Name: "completes-what-was-given-up", Judges: "completion", Say: func(w plan.World, p *plan.Plan) {
		if p.Status.RolledBackFrom != "" {
			p.Status.CurrentRevision = w.TemplateHash
		}
	}, Often: rollouts},
	{Name: "updates-beside-the-old", Judges: "due", See: notOfType(spec.RecreateStrategy), Often: []string{"recreate"}},
	{Name: "brings-back-unsaid", Judges: "volumes, claims, shares", Say: each(func(_ plan.World, a *plan.RestoreVolume) { a.Volume.Fate = records.FateKeep }), Often: append([]string{"bring-back"}, volumes...)},
	{Name: "gives-up-unasked", Judges: "volumes, claims, shares", See: eachSlot(askedToGiveUp), Often: volumes, Blind: "progress"},
	{Name: "acts-for-an-orphan", Judges: "orphans", See: setChange(func(s *records.Set) { s.Orphaned = false }), Often: []string{"orphan"}},
	{Name: "acts-for-a-set-that-is-gone", Judges: "absence", Say: func(w plan.World, p *plan.Plan) {
		if w.Set == nil && len(w.Slots) > 0 { // a claim may have none
			p.Actions = append(p.Actions, plan.Forget{ID: w.Slots[0].ID})
		}
	}, Often: volumes},
	{Name: "ignores-reserved", Judges: "churn, reasons, order", See: setChange(func(s *records.Set) {
		if s.Spec.Ordinals != nil {
			s.Spec.Ordinals = &spec.Ordinals{Start: s.Spec.Ordinals.Start}
		}
	}), Often: []string{"range"}},
	{Name: "keeps-the-range", Judges: "churn, reasons, order", See: setChange(func(s *records.Set) {
		if s.Spec.Ordinals != nil {
			s.Spec.Ordinals = &spec.Ordinals{Reserved: s.Spec.Ordinals.Reserved}
		}
	}), Often: []string{"range"}},
	{Name: "shares-a-volume", Judges: "volumes, claims, shares", Say: each(shareVolume)},
	{Name: "uses-a-token-again", Judges: "tokens, reasons", Say: each(func(_ plan.World, a *plan.Start) {
		a.Member.Token.Number--
		a.Identity.LastToken = a.Member.Token
	})},
	{Name: "shares-an-address", Judges: "addresses, progress", Say: each(func(_ plan.World, a *plan.Start) {
		a.Member.Address = netip.MustParseAddr("10.88.0.1")
	})},
	{Name: "gives-no-reason", Judges: "reasons", Say: func(_ plan.World, p *plan.Plan) {
		p.Blocked = p.Blocked[:max(0, len(p.Blocked)-1)]
	}},
	{Name: "counts-wrong", Judges: "status", Say: func(_ plan.World, p *plan.Plan) { p.Status.ReadyReplicas++ }},
	{Name: "never-starts-the-second", Judges: "progress, reasons", Say: neverSecond},
	{Name: "completes-without-members", Judges: "completion", Say: func(w plan.World, p *plan.Plan) {
		p.Status.CurrentCompleted = p.Status.CurrentCompleted || w.Set != nil && w.Set.Replicas() == 0 && !w.Set.Paused
	}},
	{Name: "never-forgets", Judges: "progress, reasons", Say: without[plan.Forget]},
	{Name: "keeps-a-deleted-set", Judges: "progress", Say: without[plan.RemoveSet]},
}

// rule9 are judges that see much of what others are to find.
const rule9 = "deadline, rollback, completion"

var rollouts = []string{"deadline", "pause", "wait"}

var says = []string{"says", "order", "wait"}

var silences = []string{"node-loss", "expire-session", "cut", "cut-server", "halt-agent", "wait"}

var backs = []string{"backup", "go-back", "declare", "scale"}

var volumes = []string{"retain", "scale", "claim"}

var fences = []string{"fence", "cut", "power-off", "remove-node", "take-name", "new-node"}

var joins = []string{"backup", "go-back", "new-node", "declare", "excuse", "scale", "cordon"}

var restores = []string{"backup", "restore", "user"}
