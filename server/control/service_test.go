package control

import (
	"slices"
	"testing"
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
