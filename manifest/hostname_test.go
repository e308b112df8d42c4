package manifest

import (
	"slices"
	"strings"
	"testing"
)

// TestHostnamesOfTemplates: as in Kubernetes, where the controller of the set replaces hostname and subdomain of
// each pod, they change nothing; and a hostname that is the whole name has at most 64 characters.
func TestHostnamesOfTemplates(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: prod}\nspec:\n  replicas: 11\n  serviceName: peers\n" +
		"  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec: {containers: [{name: db, image: db:1}], "
	for _, tt := range []struct {
		name, spec, domain string
		warnings, wrong    []string
	}{
		{"what is so anyway", "hostname: '', subdomain: peers, setHostnameAsFQDN: false", "cluster.local", nil, nil},
		{"others", "hostname: a, subdomain: db", "cluster.local", []string{
			"f:10:51: spec.template.spec.hostname: has no effect here; each member has its own name as hostname, as in Kubernetes, where the set replaces it",
			"f:10:64: spec.template.spec.subdomain: has no effect here; serviceName of the set is the subdomain, as in Kubernetes, where the set replaces it"}, nil},
		{"it fits", "setHostnameAsFQDN: true", "a." + strings.Repeat("b", 41), nil, nil},
		{"one too many", "setHostnameAsFQDN: true", "a." + strings.Repeat("b", 42), nil, []string{
			"f:10:51: spec.template.spec.setHostnameAsFQDN: \"db-10.peers.prod.svc.a." + strings.Repeat("b", 25) +
				"…\" has 65 characters, the maximum of a hostname is 64; shorten the name of the set, its serviceName or its namespace, or remove it"}},
		{"no domain is known", "setHostnameAsFQDN: true", "", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(head + tt.spec + "}\n")}}, Options{Domain: tt.domain})
			if got := shown(problems); !slices.Equal(got, tt.wrong) {
				t.Errorf("got the problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.wrong, "\n"))
			}
			if got := shown(warnings); !slices.Equal(got, tt.warnings) {
				t.Errorf("got the warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.warnings, "\n"))
			}
			if s := o.Sets[0].Spec.Template.Spec; s.Hostname+s.Subdomain != "" {
				t.Errorf("what has no effect is in the template: %q, %q", s.Hostname, s.Subdomain)
			}
		})
	}
}
