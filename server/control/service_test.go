package control

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// TestAServiceWithoutMembersIsSaid: as that of a Deployment that was left out; and a named
// port that no set has, also of sets that are stored already.
func TestAServiceWithoutMembersIsSaid(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	service := func(spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: None, " + spec + "}\n"
	}
	for spec, want := range map[string][]string{
		"selector: {app: web}": {"Service default/web: no set has members that it selects; its name resolves to nothing"},
		"selector: {app: web}, ports: [{port: 80, targetPort: http}]":   {"Service default/web: no set has members that it selects; its name resolves to nothing"},
		"selector: {app: db}, ports: [{port: 80, targetPort: http}]":    {"Service default/web: no set that it selects has a port named http"},
		"selector: {app: db}, ports: [{port: 80, targetPort: client}]":  nil,
		"selector: {app: db}, ports: [{port: 2379, targetPort: 12379}]": nil,
	} {
		out, err := r.apply(service(spec))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.GetWarnings(), want) {
			t.Errorf("%s: got %q, want %q", spec, out.GetWarnings(), want)
		}
	}
}

// TestAgentsThatDoNotLeadServicesAreNamed: in one line for all Services of an apply, and only nodes that
// are connected.
func TestAgentsThatDoNotLeadServicesAreNamed(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	join := func(name spec.NodeName, level int) {
		r.leveled(name, level)
		r.Record(store.SessionKey(name), records.Session{Node: name, UID: "u-" + spec.UID(name), Boot: "b1", ID: 1})
	}
	warned := func(yaml string, want ...string) {
		t.Helper()
		out, err := r.apply(yaml)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.GetWarnings(), want) {
			t.Errorf("got %q, want %q", out.GetWarnings(), want)
		}
	}
	join("new", spec.Level)
	r.leveled("silent", 1)
	warned(web("web", ""))
	join("old", 1)
	warned(web("web", ""), "Service default/web: its address cannot be reached from node old, where the agent is too old to lead Services; upgrade stead there")
	warned(web("headless", "clusterIP: None"))
	for _, name := range []spec.NodeName{"old2", "old3", "old4", "old5"} {
		join(name, 0)
	}
	warned(web("web", "")+web("other", ""), "Service default/web and 1 more: their addresses cannot be reached from node old, old2, old3 and 2 more, "+
		"where the agent is too old to lead Services; upgrade stead there")
}
