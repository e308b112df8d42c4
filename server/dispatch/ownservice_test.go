package dispatch

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A Service that selects no members is sent to each node by itself, in full, from when it is there until it is gone
// or selects members; and again, as a set, when a node lost it.
func TestAServiceOfItsOwnIsSentToEachNode(t *testing.T) {
	r, n, round := followed(t)
	service := func(kind, to string) {
		r.Record(store.ServiceKey("default", "out"), records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "out"},
			Spec: spec.ServiceSpec{Type: kind, ExternalName: to, Selector: map[string]string{"app": "kv"}}})
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"at first", func() {}, "db 0>1 brief"},
		{"it comes", func() { service(spec.ExternalName, "a.example") }, "svc:out 0>3"},
		{"it changes", func() { service(spec.ExternalName, "b.example") }, "svc:out 3>4"},
		{"it stays", func() {}, ""},
		{"it is lost", func() { n.Receive(resendOf("svc:out")) }, "svc:out 0>4"},
		{"it selects members", func() { service("ClusterIP", "") }, "svc:out 0>7 gone"},
		{"it does not", func() { service(spec.ExternalName, "b.example") }, "svc:out 0>8"},
		{"it goes", func() { r.Commit(store.Del(store.ServiceKey("default", "out"))) }, "svc:out 0>9 gone"},
	} {
		step.change()
		round()
		got := n.tells().pictures
		if list := strings.Join(shown(t, got), " "); list != step.want {
			t.Errorf("%s: sent %q, want %q", step.name, list, step.want)
		}
		if step.name != "it changes" {
			continue
		}
		sets, _ := wire.ToSets(got.GetSets())
		if p := wire.ApplySet(records.Snapshot{}, sets[0], ""); len(p.Names) != 1 || p.Names[0].Name != "out" || p.Names[0].ExternalName != "b.example" {
			t.Errorf("it changes: got %+v", p)
		}
	}
}

// A governing service that is an alias says nothing of the members: its name is in a snapshot of its own.
func TestAnAliasIsNoNameOfASet(t *testing.T) {
	alias := &records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "db"},
		Spec: spec.ServiceSpec{Type: spec.ExternalName, ExternalName: "a.example", Selector: map[string]string{"app": "db"}}}
	set := &records.Set{Ref: refDB, Spec: spec.SetSpec{ServiceName: "db", Template: testTemplate()}}
	if got := names(set, "", []*records.ServiceRecord{alias}); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}
