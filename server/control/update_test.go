package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// running stores three lives of the set db on its template's revision.
func (r *rig) running() {
	r.t.Helper()
	r.mustApply(setYAML)
	s, _ := r.set("db")
	h := spec.HashTemplate(s.Template())
	r.Record(store.RevisionKey(s.Ref, h), records.Revision{Ref: s.Ref, Hash: h, Number: 1, Template: s.Template()})
	r.Record(store.StatusKey(s.Ref), records.SetStatus{CurrentRevision: h, CurrentCompleted: true, UpdateRevision: h})
	for n := range 3 {
		r.life(spec.Identity{Namespace: "default", Set: "db", Ordinal: n}, h)
	}
}

// life stores a life of the set db that is ready.
func (r *rig) life(id spec.Identity, h spec.RevisionHash) {
	r.t.Helper()
	token := spec.Token{Epoch: 1, Number: 9}
	r.Record(store.MemberKey(id), records.Member{ID: id, Token: token, Goal: records.GoalRun, Revision: h, Node: "n1", NodeUID: "uid1", Boot: "b1"})
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: token, Due: h, AvailableOn: h, ReadyToken: token})
	r.Record(store.ReportKey(id), records.Report{ID: id, Token: token, Node: "n1", Session: 1, Phase: records.PhaseRunning, Ready: true, ReadyFor: time.Hour})
}

// disks stores the volumes of three members.
func (r *rig) disks() {
	r.t.Helper()
	for n := range 3 {
		id := spec.Identity{Namespace: "default", Set: "db", Ordinal: n}
		r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: records.VolumeID("v-" + id.MemberName()), Number: 1,
			Class: spec.LocalClass, Node: "n1", SizeBytes: 1 << 30, Fate: records.FateKeep})
	}
}

var newImage = strings.Replace(setYAML, "db:1", "db:2", 1)

func TestApplySaysWhomAnUpdateRestarts(t *testing.T) {
	with := func(manifest, strategy string) string {
		return strings.Replace(manifest, "replicas: 3", "replicas: 3\n  updateStrategy: "+strategy, 1)
	}
	withAPI := func(manifest, loss string) string {
		return strings.Replace(strings.Replace(manifest, "apps/v1", "stead/v1", 1), "replicas: 3", "replicas: 3\n  nodeLoss: "+loss, 1)
	}
	withLabel := func(manifest string) string {
		return strings.Replace(manifest, "{labels: {app: db", "{labels: {tier: two, app: db", 1)
	}
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"an image":             {newImage, []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"two at once":          {with(newImage, "{rollingUpdate: {maxUnavailable: 70%}}"), []string{"restarts db-2, db-1, db-0 in this order, at most 2 down"}},
		"a part":               {with(newImage, "{rollingUpdate: {partition: 2}}"), []string{"restarts db-2", "the partition keeps db-1, db-0 as they are"}},
		"all but one":          {with(newImage, "{rollingUpdate: {partition: 1}}"), []string{"restarts db-2, db-1 in this order, at most 1 down", "the partition keeps db-0 as it is"}},
		"on delete":            {with(newImage, "{type: OnDelete}"), []string{"db-2, db-1, db-0 move on when they are restarted (OnDelete)"}},
		"all at once":          {with(newImage, "{type: Recreate}"), []string{"stops db-2, db-1, db-0 all at once, then starts them again (Recreate)"}},
		"a label":              {withLabel(setYAML), []string{"the members' labels change at once, without a restart"}},
		"a label and an image": {withLabel(newImage), []string{"the members' labels change at once, without a restart", "restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"lost nodes": {withAPI(setYAML, "{policy: Replace, after: 30s}"), []string{
			"from its next life on, a member stops by itself when its node has reached no server for 30s, for whatever reason, and starts on another node (nodeLoss Replace)",
			"volumes that are not shared stay on their nodes: a member with one stops all the same, and starts when its node is back"}},
		"lost nodes, as before":  {withAPI(setYAML, "{policy: Hold}"), nil},
		"the strategy alone":     {with(setYAML, "{rollingUpdate: {partition: 1}}"), nil},
		"only who will be there": {strings.Replace(newImage, "replicas: 3", "replicas: 1", 1), []string{"scales db 3 → 1: stops db-2, db-1 in this order; volumes kept", "restarts db-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.running()
			r.disks()
			out, err := r.apply(c.manifest)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.GetApplied()[0].GetEffects(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestApplySaysWhomAnUpdateChangesInPlace(t *testing.T) {
	with := func(manifest, more string) string {
		return strings.Replace(strings.Replace(manifest, "apps/v1", "stead/v1", 1), "replicas: 3", "replicas: 3\n  updateStrategy: {inPlace: [Image]"+more+"}", 1)
	}
	for name, c := range map[string]struct {
		manifest string
		level    int
		want     []string
	}{
		"an image":                            {with(newImage, ""), spec.Level, []string{"changes db-2, db-1, db-0 in place, in this order, at most 1 down"}},
		"two at once":                         {with(newImage, ", rollingUpdate: {maxUnavailable: 2}"), spec.Level, []string{"changes db-2, db-1, db-0 in place, in this order, at most 2 down"}},
		"one":                                 {with(newImage, ", rollingUpdate: {partition: 2}"), spec.Level, []string{"changes db-2 in place", "the partition keeps db-1, db-0 as they are"}},
		"what differs otherwise":              {with(strings.Replace(newImage, "        image:", "        args: [x]\n        image:", 1), ""), spec.Level, []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"with an agent that does not know it": {with(newImage, ""), 2, []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"the field alone":                     {with(setYAML, ""), spec.Level, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.running()
			r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Level: c.level})
			r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 1})
			out, err := r.apply(c.manifest)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.GetApplied()[0].GetEffects(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestATemplateThatSharesItsHashWithAnotherIsRefused(t *testing.T) {
	r := newRig(t)
	r.running()
	s, _ := r.set("db")
	next := s.Spec.Template
	next.Spec.Containers = slices.Clone(next.Spec.Containers)
	next.Spec.Containers[0].Image = "example.local/db:2"
	h := spec.HashTemplate(next)
	r.Record(store.RevisionKey(s.Ref, h), records.Revision{Ref: s.Ref, Hash: h, HashVersion: spec.HashVersion, Number: 2, Template: s.Template()})
	_, err := r.apply(newImage)
	refused(t, err, codes.FailedPrecondition, "same hash", "revision 2")
}

func TestUndoAndRestart(t *testing.T) {
	r := newRig(t)
	r.running()
	image := func() string { s, _ := r.set("db"); return s.Spec.Template.Spec.Containers[0].Image }
	undo := func(to int64) error {
		_, err := r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db", ToRevision: to})
		return err
	}
	refused(t, undo(0), codes.FailedPrecondition, "no earlier revision")
	refused(t, undo(7), codes.NotFound, "no revision 7")
	refused(t, undo(-1), codes.InvalidArgument)

	r.mustApply(newImage)
	out, err := r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db"})
	if err != nil || image() != "example.local/db:1" || len(out.GetEffects()) != 0 {
		t.Fatalf("image %s, effects %q, %v; want the first, whom all members run still", image(), out.GetEffects(), err)
	}
	before := r.rev()
	if err := undo(1); err != nil || r.rev() != before {
		t.Fatalf("%v; want nothing written, for it is there already", err)
	}

	out, err = r.api.Restart(r.ctx, &proto.RestartRequest{Set: "db"})
	if want := []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}; err != nil || !slices.Equal(out.GetEffects(), want) {
		t.Fatalf("got %q, %v; want %q", out.GetEffects(), err, want)
	}
	s, _ := r.set("db")
	marked := s.RestartedAt
	r.mustApply(setYAML)
	if marked == "" {
		t.Fatal("the set does not say when it was restarted")
	}
	s, _ = r.set("db")
	if s.RestartedAt != marked {
		t.Fatal("applying the file again took the restart back, which would restart all once more")
	}
	if err := undo(0); err != nil {
		t.Fatal(err)
	}
	s, _ = r.set("db")
	if s.RestartedAt != "" || s.Spec.Template.Metadata.Annotations[records.RestartedAtAnnotation] != "" {
		t.Fatalf("got %+v; want the template as it was before the restart", s)
	}
}

func TestAMemberIsAskedToRestartByItsToken(t *testing.T) {
	r := newRig(t)
	r.running()
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
	restart := func(member string) error {
		_, err := r.api.Restart(r.ctx, &proto.RestartRequest{Member: member})
		return err
	}
	if err := restart("db-1"); err != nil {
		t.Fatal(err)
	}
	_, kvs, err := r.Store.Get(r.ctx, store.RequestKey(id))
	if err != nil {
		t.Fatal(err)
	}
	q, err := store.Decode[records.Request](kvs[store.RequestKey(id)])
	if want := (spec.Token{Epoch: 1, Number: 9}); err != nil || q.Token != want || q.ID != id {
		t.Fatalf("got %+v, %v; want token %s", q, err, want)
	}
	refused(t, restart("db-9"), codes.FailedPrecondition, "no life")
	refused(t, restart("db"), codes.InvalidArgument)
	refused(t, restart(""), codes.InvalidArgument, "name the set or the member")
}

func TestAPausedRolloutIsHeldAndResumedAsASpecIsEdited(t *testing.T) {
	r := newRig(t)
	r.running()
	pause := func(paused bool) []string {
		t.Helper()
		out, err := r.api.Pause(r.ctx, &proto.PauseRequest{Name: "db", Paused: paused})
		if err != nil {
			t.Fatal(err)
		}
		return out.GetEffects()
	}
	pause(true)
	s, _ := r.set("db")
	if !s.Paused || s.Generation != 2 {
		t.Fatalf("got %+v, want it paused by its second edit", s)
	}
	before := r.rev()
	pause(true)
	if r.rev() != before {
		t.Fatal("pausing what is paused wrote something")
	}
	out, err := r.apply(newImage)
	if want := []string{"db-2, db-1, db-0 stay as they are until the rollout is resumed"}; err != nil || !slices.Equal(out.GetApplied()[0].GetEffects(), want) {
		t.Fatalf("got %q, %v; want %q", out.GetApplied(), err, want)
	}
	if want := []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}; !slices.Equal(pause(false), want) {
		t.Fatalf("want %q", want)
	}
	if s, _ := r.set("db"); s.Paused || s.Generation != 4 {
		t.Fatalf("got %+v, want it to go on by its fourth edit", s)
	}
	_, err = r.api.Pause(r.ctx, &proto.PauseRequest{Name: "nope"})
	refused(t, err, codes.NotFound)
	s.Deleting = true
	r.Record(store.SetKey(s.Ref), s)
	_, err = r.api.Pause(r.ctx, &proto.PauseRequest{Name: "db"})
	refused(t, err, codes.FailedPrecondition, "being deleted")
}

func TestInfoNamesTheServersThatTheStoreTellsOf(t *testing.T) {
	r := newRig(t)
	r.Put(store.LeaderKey, []byte("s2"))
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 1, Server: "s3"})
	i, err := r.api.Info(r.ctx, &proto.InfoRequest{})
	if err != nil || !slices.Equal(i.GetServers(), []string{"s1", "s2", "s3"}) || i.GetLeader() != "s2" || i.GetStoreVersion() != "memory" {
		t.Fatalf("got %v, %v", i, err)
	}
}

// The verb says what get says: for what the restart waits.
func TestARestartSaysForWhatItWaits(t *testing.T) {
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
	for name, c := range map[string]struct {
		other records.Report
		goal  records.Goal // of the other
		want  []string
	}{
		"it ends now":         {records.Report{Ready: true, ReadyFor: time.Hour}, records.GoalRun, nil},
		"another one is down": {records.Report{}, records.GoalRun, []string{"restart delayed until db-2 is available; at most 1 may be down at a time"}},
		"another one stops":   {records.Report{Ready: true, ReadyFor: time.Hour}, records.GoalStop, []string{"restart delayed until db-2 is available; at most 1 may be down at a time"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.running()
			c.other.Phase, c.other.Session = records.PhaseRunning, 1
			r.lives(2, func(m *records.Member) { m.Goal = c.goal }, &c.other)
			out, err := r.api.Restart(r.ctx, &proto.RestartRequest{Member: "db-1"})
			if err != nil || !slices.Equal(out.GetEffects(), c.want) {
				t.Errorf("got %q, %v; want %q", out.GetEffects(), err, c.want)
			}
		})
	}
	stopped := plan.Plan{Blocked: []plan.Blocked{{ID: id, Reason: causes.BlockedStopping, Text: "it is stopping"}}}
	if got := describeRestart(stopped, id); got != nil {
		t.Errorf("the leader was faster: got %q of a member that stops already", got)
	}
}
