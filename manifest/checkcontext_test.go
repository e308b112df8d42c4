package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestCapabilitiesThatReachBeyondTheMemberAreRefused(t *testing.T) {
	for _, name := range append([]string{"ALL"}, capabilities...) {
		text := fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
        - name: main
          image: box:1
          securityContext: {capabilities: {drop: [ALL], add: [%s]}}
`, name)
		_, problems, _ := Parse([]Source{{Name: "db.yaml", Content: []byte(text)}}, Options{})
		if _, wrong, _ := Parse([]Source{{Name: "db.yaml", Content: []byte(text)}}, Options{Host: spec.HostAccess{Privileged: true}}); len(wrong) > 0 {
			t.Errorf("%s where the operator allows it: %v", name, wrong)
		}
		if slices.Contains(memberCapabilities, name) {
			if len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
			continue
		}
		want := `"` + name + `" reaches beyond the member; remove it, or start the servers with --allow-privileged`
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "db.yaml:13:") || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v, want %s", name, problems, want)
		}
	}
	for _, name := range strings.Fields("SYSLOG PERFMON AUDIT_CONTROL AUDIT_READ WAKE_ALARM BLOCK_SUSPEND SYS_TTY_CONFIG SYS_PACCT " +
		"CHECKPOINT_RESTORE SYS_RESOURCE LINUX_IMMUTABLE SYS_ADMIN BPF NET_ADMIN SYS_TIME") {
		if slices.Contains(memberCapabilities, name) {
			t.Errorf("%s is allowed", name)
		}
	}
}
