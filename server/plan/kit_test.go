package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// The tests write a world as a line of words:
//
//	ordered|parallel <replicas>   the set db of uid u1, created with that many members
//	initial=N start=N reserved=1,5-7 min=SECONDS uid=U deleting orphaned volumes fresh (not bootstrapped)
//	was (nor is it, but an earlier set of the name was)
//	n1 n2~ n3! n4% n5%%           nodes: live, silent (~), cordoned (!), drained (%), of all at once (%%),
//	n6^ n7^^                      whose hosts are being shut down, and are nearly out of time
//	0:ready@n1 1:starting ...     members (node n1 unless said)
//
//	update=h2                     the set's template; the revisions h1 to it are stored
//	current=h1 current=h1?        the current revision, completed or (?) never
//	partition=N max=N|P% OnDelete history=N never (replaceBroken) paused
//	last (order LeaderLast) 2L:ready (it says that it leads) 2B:ready 2BB:ready (it is busy, for too long)
//	deadline=SECONDS rollback (onFailure) still=SECONDS (no progress for so long)
//	back=h2 (rolled back from it)
//	Recreate floor=N|P% (disruption.minAvailable)
//	replace=SECONDS (nodeLoss Replace with this bound, also of the lives that are there, on nodes
//	that guard them) silent=n1,SECONDS (that stands before it: so long without a session)
//	0:ready@n2/h2 1:missing/h2?   their revision; (?) never available on it
//
// and the words of a member are: none (an identity without a life), volume (the
// same, with its volume kept), assigned, starting, never (runs, and was not ready), running
// (and was), ready, missing (reports ImageMissing), over, failed; stopping and stopped with goal Stop; stray;
// rebooted (ready, of the boot before); drained (stopped with its node); moved (stopped for a move); shut (stopped with its host).
//
//	leaves (it has decommission and forget, and agents run hooks; 3:left, owed to be forgotten)
//	whenScaled=Delete whenDeleted=Delete gone (the set's record is)
//	0:ready=Delete 0:volume=Reclaiming+Trashed   the fate of the volume, and what its node said

type kit struct {
	t    testing.TB
	w    World
	gone bool
}

func world(t testing.TB, line string) World {
	t.Helper()
	replicas := int32(0)
	set := &records.Set{
		Ref: spec.SetRef{Namespace: "default", Name: "db"}, UID: "u1", Generation: 1,
		Spec: spec.SetSpec{Replicas: &replicas, PodManagementPolicy: spec.OrderedReady},
	}
	k := &kit{t: t, w: World{
		Rev: 100, Epoch: 1, Set: set, TemplateHash: "h1", Table: true, Bootstrapped: true,
		Revisions: []*records.Revision{{Ref: set.Ref, SetUID: "u1", Hash: "h1", Number: 1}},
	}}
	initial, still, bound, leaves := -1, time.Duration(0), time.Duration(0), false
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		if strings.Contains(key, ":") {
			k.slot(word)
			continue
		}
		n, _ := strconv.Atoi(value)
		switch {
		case key == "ordered":
		case key == "parallel":
			set.Spec.PodManagementPolicy = spec.Parallel
		case key == "initial":
			initial = n
		case key == "start":
			if set.Spec.Ordinals == nil {
				set.Spec.Ordinals = &spec.Ordinals{}
			}
			set.Spec.Ordinals.Start = int32(n)
		case key == "reserved":
			if set.Spec.Ordinals == nil {
				set.Spec.Ordinals = &spec.Ordinals{}
			}
			for _, span := range strings.Split(value, ",") {
				var s spec.OrdinalSpan
				if err := json.Unmarshal([]byte(strconv.Quote(span)), &s); err != nil {
					t.Fatal(err)
				}
				set.Spec.Ordinals.Reserved = append(set.Spec.Ordinals.Reserved, s)
			}
		case key == "min":
			set.Spec.MinReadySeconds = int32(n)
		case key == "uid":
			set.UID = spec.UID(value)
		case key == "whenScaled", key == "whenDeleted":
			if set.Spec.Retention == nil {
				set.Spec.Retention = &spec.RetentionPolicy{WhenScaled: spec.Retain, WhenDeleted: spec.Retain}
			}
			if key == "whenScaled" {
				set.Spec.Retention.WhenScaled = spec.Retention(value)
			} else {
				set.Spec.Retention.WhenDeleted = spec.Retention(value)
			}
		case key == "gone": // no set at all: only what it left behind
			k.gone = true
		case key == "deleting":
			set.Deleting = true
		case key == "orphaned":
			set.Orphaned = true
		case key == "update":
			k.update(value)
		case key == "current":
			h, never := strings.CutSuffix(value, "?")
			k.w.Status = &records.SetStatus{CurrentRevision: spec.RevisionHash(h), CurrentCompleted: !never, ServiceName: "db"}
		case key == "partition":
			p := int32(n)
			k.rolling().Partition = &p
		case key == "max":
			limit, err := scalar.ParseIntOrPercent(value)
			if err != nil {
				t.Fatal(err)
			}
			k.rolling().MaxUnavailable = &limit
		case key == "last":
			k.rolling().Order = spec.OrderLeaderLast
		case key == "paused":
			set.Paused = true
		case key == "deadline":
			limit := int32(n)
			set.Spec.ProgressDeadlineSeconds = &limit
		case key == "still":
			still = time.Duration(n) * time.Second
		case key == "rollback":
			k.rolling().OnFailure = spec.OnFailureRollback
		case key == "back":
			k.w.Status.RolledBackFrom = spec.RevisionHash(value)
		case key == "Recreate":
			set.Spec.UpdateStrategy.Type = spec.RecreateStrategy
		case key == "floor": // minAvailable
			limit, err := scalar.ParseIntOrPercent(value)
			if err != nil {
				t.Fatal(err)
			}
			set.Spec.Disruption = &spec.Disruption{MinAvailable: &limit}
		case key == "OnDelete":
			set.Spec.UpdateStrategy.Type = spec.OnDeleteStrategy
		case key == "never":
			set.Spec.UpdateStrategy.ReplaceBroken = spec.ReplaceBrokenNever
		case key == "replace":
			bound = time.Duration(n) * time.Second
		case key == "silent":
			name, seconds, _ := strings.Cut(value, ",")
			n, _ := strconv.Atoi(seconds)
			silence(&k.w, spec.NodeName(name), time.Duration(n)*time.Second)
		case key == "history":
			limit := int32(n)
			set.Spec.RevisionHistoryLimit = &limit
		case key == "leaves":
			leaves = true
		case key == "fresh":
			k.w.Bootstrapped = false
		case key == "was": // an earlier set of the name was bootstrapped, and left volumes
			k.w.Bootstrapped, k.w.WasBootstrapped = false, true
		case key == "volumes":
			set.Spec.VolumeClaimTemplates = []spec.ClaimTemplate{claim("data", 10)}
		case word[0] == 'n':
			k.node(word)
		default:
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatalf("%q is no word of a world", word)
			}
			replicas = int32(n)
		}
	}
	set.InitialReplicas = int(replicas)
	if initial >= 0 {
		set.InitialReplicas = initial
	}
	for i := range 20 {
		k.w.Free = append(k.w.Free, netip.AddrFrom4([4]byte{10, 88, 1, byte(i)}))
	}
	if bound > 0 {
		guard(&k.w, bound)
	}
	if leaves {
		hasHooks(&k.w)
	}
	if still > 0 {
		k.w.Reached, k.w.Standstill = Next(k.w).Reached, still
	}
	volumes := 0
	k.w.VolumeID = func() records.VolumeID {
		volumes++
		return records.VolumeID(fmt.Sprint("new-", volumes))
	}
	if k.gone {
		k.w.Set = nil
	}
	return k.w
}

// update makes h the template's hash, and stores the revisions up to it.
func (k *kit) update(h string) {
	last, _ := strconv.Atoi(h[1:])
	for n := len(k.w.Revisions) + 1; n <= last; n++ {
		k.w.Revisions = append(k.w.Revisions, &records.Revision{
			Ref: k.w.Set.Ref, SetUID: "u1", Hash: spec.RevisionHash(fmt.Sprint("h", n)), Number: int64(n),
		})
	}
	k.w.TemplateHash = spec.RevisionHash(h)
}

func (k *kit) rolling() *spec.RollingUpdate {
	u := &k.w.Set.Spec.UpdateStrategy
	if u.RollingUpdate == nil {
		u.RollingUpdate = &spec.RollingUpdate{}
	}
	return u.RollingUpdate
}

func claim(name string, size int64) spec.ClaimTemplate {
	return spec.ClaimTemplate{
		Metadata: spec.ObjectMeta{Name: name},
		Spec:     spec.ClaimSpec{Resources: spec.VolumeResources{Requests: map[string]scalar.Quantity{"storage": {Milli: size * 1000}}}},
	}
}

// slot reads one member's word, such as 0:ready@n2.
func (k *kit) slot(word string) {
	ord, state, _ := strings.Cut(word, ":")
	state, fate, _ := strings.Cut(state, "=")
	state, revision, ok := strings.Cut(state, "/")
	if !ok {
		revision = "h1"
	}
	hash, never := strings.CutSuffix(revision, "?")
	state, node, ok := strings.Cut(state, "@")
	if !ok {
		node = "n1"
	}
	says := ord
	ord = strings.TrimRight(ord, "LB")
	n, err := strconv.Atoi(ord)
	if err != nil {
		k.t.Fatalf("%q is no ordinal", ord)
	}
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: n}
	token := spec.Token{Epoch: 1, Number: int64(10 + n)}
	slot := Slot{ID: id, Identity: &records.IdentityRecord{
		ID: id, LastToken: token, Due: spec.RevisionHash(hash), Address: netip.AddrFrom4([4]byte{10, 88, 0, byte(n)}),
		ReadyOnce: "u1", AvailableOn: spec.RevisionHash(hash),
	}}
	if never {
		slot.Identity.AvailableOn = ""
	}
	if !slices.Contains([]string{"assigned", "starting", "missing", "never"}, state) { // the life was ready
		slot.Identity.ReadyToken = token
	}
	member := &records.Member{
		ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Reason: records.ReasonCreate, Revision: slot.Identity.Due,
		Node: spec.NodeName(node), NodeUID: spec.UID("uid-" + node), Boot: "boot1", Address: slot.Identity.Address, Service: "db",
	}
	report := &records.Report{ID: id, Token: token, Node: member.Node, Session: 5, Seq: 1, Phase: records.PhaseRunning}
	switch state {
	case "none", "volume", "stray":
		member, report = nil, nil
	case "left":
		slot.Identity.Gone = &hooks.GoneMember{SetUID: "u1", ID: id, Token: token, Service: "db", Address: slot.Identity.Address}
		member, report = nil, nil
	case "assigned":
		report = nil
	case "starting":
		report.Phase = records.PhaseStarting
	case "running", "never":
	case "missing":
		report.Phase, report.Cause, report.Message = records.PhasePreparing, "ImageMissing", "no such image"
	case "ready":
		report.Ready, report.ReadyFor = true, time.Hour
	case "young":
		report.Ready, report.ReadyFor = true, time.Second
	case "rebooted":
		report.Ready, report.ReadyFor, member.Boot = true, time.Hour, "boot0"
	case "over":
		report.Phase = records.PhaseStopped
	case "failed":
		report.Phase, report.Cause, report.Message = records.PhaseFailed, "VolumeRefused", "another owner"
	case "loop":
		report.Phase, report.Cause, report.Message = records.PhaseRunning, "CrashLoop", "exited with code 1"
	case "restarted":
		member.Goal, member.StopReason, report.Phase = records.GoalStop, records.ReasonRestart, records.PhaseStopped
	case "drained":
		member.Goal, member.StopReason, report.Phase = records.GoalStop, records.ReasonDrain, records.PhaseStopped
	case "moved":
		member.Goal, member.StopReason, report.Phase = records.GoalStop, records.ReasonMove, records.PhaseStopped
	case "shut":
		member.Goal, member.StopReason, report.Phase = records.GoalStop, records.ReasonNodeShutdown, records.PhaseStopped
	case "turning", "turned": // stopped for an update
		member.Goal, member.StopReason, report.Phase = records.GoalStop, records.ReasonUpdate, records.PhaseStopping
		if state == "turned" {
			report.Phase = records.PhaseStopped
		}
	case "stopping", "stopped":
		member.Goal, member.StopReason = records.GoalStop, records.ReasonScaleDown
		report.Phase = records.PhaseStopping
		if state == "stopped" {
			report.Phase = records.PhaseStopped
		}
	default:
		k.t.Fatalf("%q is no word of a member", state)
	}
	if state == "stray" {
		slot.Strays = []NodeStray{{Node: spec.NodeName(node), Stray: spec.LifeID{ID: id, Token: token}}}
	}
	if state == "volume" || member != nil && len(k.w.Set.Spec.VolumeClaimTemplates) > 0 {
		slot.Volumes = map[spec.ClaimName]*records.Volume{"data": {
			ID: id, Claim: "data", UID: records.VolumeID(fmt.Sprint("old-", n)), Number: 1, Class: spec.LocalClass,
			Node: spec.NodeName(node), SizeBytes: 10, Fate: records.FateKeep,
		}}
		slot.Identity.VolumeNumbers = map[spec.ClaimName]int{"data": 1}
		slot.Identity.VolumeReady = map[spec.ClaimName]int{"data": 1}
	}
	if member != nil && slot.Volumes != nil {
		member.Volumes = []records.MemberVolume{{Claim: "data", ID: slot.Volumes["data"].UID, Number: 1, Class: spec.LocalClass, SizeBytes: 10}}
	}
	fate, said, _ := strings.Cut(fate, "+")
	if v := slot.Volumes["data"]; v != nil && fate != "" {
		v.Fate = records.VolumeFate(fate)
	}
	if said != "" {
		slot.Said = map[spec.ClaimName]*records.VolumeReport{"data": {
			ID: id, Claim: "data", Volume: slot.Volumes["data"].UID, Node: spec.NodeName(node), State: records.VolumeState(said),
			Cause: "VolumeForeign", Message: "it is another's",
		}}
	}
	if strings.Contains(says, "L") {
		report.Claim.Leads, report.Claim.Term = true, 1
	}
	if strings.Contains(says, "B") {
		report.Claim.Busy = "it feeds another"
	}
	if strings.Contains(says, "BB") {
		report.Claim.BusyFor = time.Hour
	}
	slot.Member, slot.Report = member, report
	k.w.Slots = append(k.w.Slots, slot)
}

// apply makes the world after all actions of p.
func apply(w World, p Plan) World {
	for _, a := range p.Actions {
		w = applyOne(w, a)
	}
	w.Status = &p.Status
	return w
}

// applyOne makes the world after one action.
func applyOne(w World, a Action) World {
	w.Slots = slices.Clone(w.Slots)
	w.apply(a)
	return w
}

// slotOf finds or makes the slot of an identity; w.Slots must be the caller's own.
func slotOf(w *World, id spec.Identity) *Slot { return w.slotOf(id) }

func encodeStatus(s records.SetStatus) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}
