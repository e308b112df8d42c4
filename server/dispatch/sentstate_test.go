package dispatch

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// A node hears of a life again when what it is told with it changes, and only then.
func TestALifeIsToldAgainWhenWhatIsToldWithItChanges(t *testing.T) {
	volume := records.Volume{ID: ident(1), Claim: "data", UID: "v1", Number: 1, Node: "n9", Fate: records.FateKeep}
	set := func(change func(*records.Set)) func(*rig) {
		return func(r *rig) {
			s := testSet(1)
			change(&s)
			r.Record(store.SetKey(refDB), s)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*rig)
		want   func(records.Life) bool // nil: it is not told again
	}{
		{"nothing", func(*rig) {}, nil},
		{"what it is not told of: the number of members", set(func(s *records.Set) { s.Generation = 2; s.Spec.Replicas = ptr(int32(3)) }), nil},
		{"the record of its identity, which is lost", func(r *rig) { r.Commit(store.Del(store.IdentityKey(ident(0)))) }, nil},
		{"its record", func(r *rig) {
			m := begun()
			m.Goal = records.GoalStop
			r.Record(store.MemberKey(ident(0)), m)
		}, func(l records.Life) bool { return l.Member.Goal == records.GoalStop }},
		{"the service of its set", set(func(s *records.Set) { s.Spec.ServiceName = "renamed" }),
			func(l records.Life) bool { return l.Service == "renamed" }},
		{"how long its set has members be ready", set(func(s *records.Set) { s.Spec.MinReadySeconds = 7; s.Generation = 5 }),
			func(l records.Life) bool { return l.MinReadySeconds == 7 && l.SetGeneration == 5 }},
		{"that its containers get no variables of services", set(func(s *records.Set) { s.Spec.Template.Spec.EnableServiceLinks = new(false) }),
			func(l records.Life) bool { return l.NoServiceLinks }},
		{"that its set is bootstrapped", func(r *rig) { r.Put(store.BootstrappedKey("u1"), []byte("{}")) },
			func(l records.Life) bool {
				return l.Bootstrapped && reflect.DeepEqual(l.FreshVolumes, map[spec.ClaimName]string{"data": records.VolumeReplaced})
			}},
		{"that a peer's disk was used", func(r *rig) {
			r.Record(store.IdentityKey(ident(1)), records.IdentityRecord{ID: ident(1), VolumeReady: map[spec.ClaimName]int{"data": 1}})
			r.Record(store.VolumeKey(ident(1), "data"), volume)
		}, func(l records.Life) bool {
			return reflect.DeepEqual(l.FreshVolumes, map[spec.ClaimName]string{"data": records.VolumeReplaced})
		}},
		{"its set is deleted: it goes on as it was begun", func(r *rig) { r.Commit(store.Del(store.SetKey(refDB))) },
			func(l records.Life) bool { return l.Service == "db" && l.SetGeneration == 0 && !l.Bootstrapped }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			r.Record(store.MemberKey(ident(0)), begun())
			h := r.hand(n1)
			first := h.lives()
			if len(first) != 1 || first[0].SetGeneration != 1 || first[0].Service != "dbs" || first[0].FreshVolumes["data"] != records.VolumeFirst {
				t.Fatalf("at first it is told %+v", first)
			}
			c.change(r)
			switch again := h.lives(); {
			case c.want == nil && len(again) != 0:
				t.Errorf("told again: %+v", again)
			case c.want != nil && (len(again) != 1 || !c.want(again[0])):
				t.Errorf("told %+v", again)
			}
			if once := h.lives(); len(once) != 0 {
				t.Errorf("told once more: %+v", once)
			}
		})
	}
}

// begun is db-0 on n1 with a volume.
func begun() records.Member {
	m := testMember(0, 10, "n1", "uid1")
	m.Volumes = []records.MemberVolume{{Claim: "data", Number: 1}}
	return m
}

// Of the lives that are told each has its template; one that came before it waits, and one
// that went away and came again is told again.
func TestALifeIsToldWhenItsTemplateHasCome(t *testing.T) {
	r := newStill(t)
	r.Record(store.SetKey(refDB), testSet(1))
	r.live(0, 10, "n1", "uid1")
	h := r.hand(n1)
	if got := h.lives(); len(got) != 0 {
		t.Fatalf("told %+v before its template came", got)
	}
	r.Record(store.RevisionKey(refDB, "r1"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r1", Number: 1, Template: testTemplate()})
	if got := h.lives(); len(got) != 1 || len(got[0].Template.Spec.Containers) != 1 {
		t.Fatalf("told %+v", got)
	}
	backup, _ := r.Get(store.MemberKey(ident(0)))
	r.Commit(store.Del(store.MemberKey(ident(0))))
	if now := h.tells(); now.wanted != nil {
		t.Errorf("absence is no order: told %v", now.wanted)
	}
	r.Put(store.MemberKey(ident(0)), backup.Value)
	if got := h.lives(); len(got) != 1 {
		t.Errorf("told %+v when it was there again", got)
	}
}

// What a node holds is over when its identity has had a newer life, and is said so once.
func TestWhatANodeHoldsIsOverByANewerLifeAlone(t *testing.T) {
	old := spec.LifeID{ID: ident(0), Token: token(10)}
	for _, c := range []struct {
		name   string
		change func(*rig)
		over   bool
		stray  bool
	}{
		{"it is the present life", func(*rig) {}, false, false},
		{"the identity is not known", func(r *rig) {
			r.Commit(store.Del(store.MemberKey(ident(0))), store.Del(store.IdentityKey(ident(0))))
		}, false, true},
		{"the life is gone, and none came after it", func(r *rig) { r.Commit(store.Del(store.MemberKey(ident(0)))) }, false, true},
		{"the life is another machine's of this name", func(r *rig) { r.live(0, 10, "n1", "uid0") }, false, true},
		{"the life is another node's", func(r *rig) { r.live(0, 10, "n2", "uid2") }, false, true},
		{"a newer one began here", func(r *rig) { r.live(0, 30, "n1", "uid1") }, true, false},
		{"a newer one began elsewhere", func(r *rig) { r.live(0, 30, "n2", "uid2") }, true, false},
		{"a newer one came and went", func(r *rig) {
			r.live(0, 30, "n2", "uid2")
			r.Commit(store.Del(store.MemberKey(ident(0))))
		}, true, false},
		{"it is wanted, though a newer token was given", func(r *rig) {
			r.Record(store.IdentityKey(ident(0)), records.IdentityRecord{ID: ident(0), LastToken: token(30)})
		}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			c.change(r)
			with := n1
			with.holds = []spec.LifeID{old}
			h := r.hand(with)
			over := h.tells().wanted.GetOver()
			if got := len(over) == 1 && wire.ToToken(over[0].GetToken()) == old.Token; got != c.over {
				t.Errorf("over: %v", over)
			}
			if again := h.tells().wanted.GetOver(); len(again) != 0 {
				t.Errorf("said again: %v", again)
			}
			kv, _ := r.Get(store.FactsKey("n1"))
			if facts, err := store.Decode[records.NodeFacts](kv); err != nil || (len(facts.Strays) == 1) != c.stray {
				t.Errorf("strays: %v, %v", facts.Strays, err)
			}
		})
	}
}

// A life that a node took up again after it was told that it is over is told so again.
func TestWhatIsOverIsSaidAgainToWhoHoldsItAgain(t *testing.T) {
	r := newStill(t)
	r.begin()
	old := spec.LifeID{ID: ident(0), Token: token(5)}
	h := r.hand(n1)
	for range 2 {
		h.inventory(old)
		if over := h.tells().wanted.GetOver(); len(over) != 1 {
			t.Errorf("over: %v", over)
		}
		h.inventory()
		if over := h.tells().wanted.GetOver(); len(over) != 0 {
			t.Errorf("it holds nothing: %v", over)
		}
	}
}

// inventory has the node say what it holds.
func (h *hand) inventory(lives ...spec.LifeID) {
	i := &proto.Inventory{}
	for _, l := range lives {
		i.Holdings = append(i.Holdings, &proto.Holding{Id: wire.Identity(l.ID), Token: wire.Token(l.Token)})
	}
	h.Receive(&proto.FromNode{Kind: &proto.FromNode_Inventory{Inventory: i}})
}

// Lists are in one order, whatever the order of what they are made from.
func TestLivesAreOrdered(t *testing.T) {
	sorted := []spec.LifeID{
		{ID: spec.Identity{Namespace: "a", Set: "z", Ordinal: 9}, Token: token(9)},
		{ID: spec.Identity{Namespace: "b", Set: "c", Ordinal: 9}, Token: token(9)},
		{ID: spec.Identity{Namespace: "b", Set: "d", Ordinal: 2}, Token: token(9)},
		{ID: spec.Identity{Namespace: "b", Set: "d", Ordinal: 10}, Token: token(1)},
		{ID: spec.Identity{Namespace: "b", Set: "d", Ordinal: 10}, Token: token(2)},
	}
	mixed := slices.Clone(sorted)
	slices.Reverse(mixed)
	slices.SortFunc(mixed, compareLives)
	if !slices.Equal(mixed, sorted) {
		t.Errorf("got %v", mixed)
	}
}

// The files that lives name are told when they are new or changed, each once; and again when
// a life names them after none did.
func TestFilesAreToldWhenTheyChange(t *testing.T) {
	r := newStill(t)
	r.Record(store.SetKey(refDB), testSet(2))
	tpl := testTemplate()
	tpl.Spec.Volumes = []spec.VolumeMedia{{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "conf"}}}
	r.Record(store.RevisionKey(refDB, "r1"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r1", Number: 1, Template: tpl})
	r.live(0, 10, "n1", "uid1")
	r.live(1, 11, "n1", "uid1") // which names the same
	config := func(content string) {
		r.Record(store.ConfigKey("default", "conf"), records.ConfigRecord{Meta: records.Meta{Namespace: "default", Name: "conf"}, Files: map[string]scalar.Bytes{"f": scalar.Bytes(content)}})
	}
	config("1")
	h := r.hand(n1)
	files := func() map[string]string {
		t.Helper()
		docs, err := wire.ToDocuments[records.Files](h.tells().files.GetFilesJson())
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		for _, f := range docs {
			if _, twice := told[f.Name]; twice {
				t.Errorf("%s is told twice", f.Name)
			}
			told[f.Name] = string(f.Content["f"])
			if f.Absent {
				told[f.Name] = "absent"
			}
		}
		return told
	}
	for _, step := range []struct {
		name   string
		change func()
		want   map[string]string
	}{
		{"all at first", func() {}, map[string]string{"conf": "1", "pass": "absent"}},
		{"nothing more", func() {}, map[string]string{}},
		{"one that changed", func() { config("2") }, map[string]string{"conf": "2"}},
		{"one that went", func() { r.Commit(store.Del(store.ConfigKey("default", "conf"))) }, map[string]string{"conf": "absent"}},
		{"one of the lives went, the other names them still", func() { r.Commit(store.Del(store.MemberKey(ident(1)))) }, map[string]string{}},
		{"no life is left", func() { r.Commit(store.Del(store.MemberKey(ident(0)))) }, map[string]string{}},
		{"one that names them comes again", func() { r.live(0, 12, "n1", "uid1") }, map[string]string{"conf": "absent", "pass": "absent"}},
	} {
		step.change()
		if got := files(); !maps.Equal(got, step.want) {
			t.Errorf("%s: told %v, want %v", step.name, got, step.want)
		}
	}
}

// Of the history of a set each change is told once to a node that has members of it; to one
// that has them again all of it.
func TestHistoryIsToldOnceWhileANodeHasMembers(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.live(1, 11, "n1", "uid1") // another member of the set
	told, sub := newSentState(machine{"n1", "uid1"}, ""), r.Cache.SubscribeNode("n1")
	next := func() (numbers []int64) {
		r.Cache.Look(func(v cache.View) {
			ch := sub.Take()
			for _, h := range told.nextHistories(v, &ch) {
				numbers = append(numbers, 0) // a history begins
				for _, c := range h.read(v).Changes {
					numbers = append(numbers, c.Number)
				}
			}
		})
		return numbers
	}
	for _, step := range []struct {
		name   string
		change func()
		want   []int64
	}{
		{"there is none", func() {}, nil},
		{"two changes", func() { r.tells(0, 1, 2) }, []int64{0, 1, 2}},
		{"nothing new", func() {}, nil},
		{"one more", func() { r.tells(0, 1, 3) }, []int64{0, 3}},
		{"no member is left", func() { r.Commit(store.Del(store.MemberKey(ident(0))), store.Del(store.MemberKey(ident(1)))) }, nil},
		{"one came again", func() { r.live(1, 12, "n1", "uid1") }, []int64{0, 1, 2, 3}},
	} {
		step.change()
		if got := next(); !slices.Equal(got, step.want) {
			t.Errorf("%s: told %v, want %v", step.name, got, step.want)
		}
	}
}
