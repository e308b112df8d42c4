package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

// TestTheNetworkOfTheHostIsTheOperatorsToGive: with its permission alone; who says ClusterFirst there is told that it looks
// up no members.
func TestTheNetworkOfTheHostIsTheOperatorsToGive(t *testing.T) {
	for _, c := range []struct{ fields, allowed, refused string }{
		{"hostNetwork: true", "beside hostNetwork ClusterFirst is Default", "start the servers with --allow-host-network"},
		{"{hostNetwork: true, dnsPolicy: ClusterFirst}", "write ClusterFirstWithHostNet", "--allow-host-network"},
		{"{hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}", "", "--allow-host-network"},
		{"{hostNetwork: true, dnsPolicy: Default}", "", "--allow-host-network"},
		{"hostNetwork: false", "", ""},
	} {
		fields := strings.Trim(c.fields, "{}")
		text := fmt.Sprintf("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  serviceName: db\n  selector: {matchLabels: {app: db}}\n"+
			"  template:\n    metadata: {labels: {app: db}}\n    spec: {%s, containers: [{name: a, image: b}]}\n", fields)
		for _, allowed := range []bool{true, false} {
			o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{Host: spec.HostAccess{Network: allowed}})
			if !allowed && c.refused != "" {
				if len(problems) != 1 || !strings.Contains(problems[0].String(), c.refused) {
					t.Errorf("%s: got %v", fields, problems)
				}
				continue
			}
			if len(problems) > 0 || len(o.Sets) != 1 || o.Sets[0].Spec.Template.Spec.HostNetwork != strings.Contains(fields, "true") {
				t.Errorf("%s: got %v, %+v", fields, problems, o.Sets)
			}
			said := fmt.Sprint(warnings)
			if c.allowed != "" && !strings.Contains(said, c.allowed) || c.allowed == "" && strings.Contains(said, "hostNetwork") {
				t.Errorf("%s: warnings %v", fields, warnings)
			}
		}
	}
}
