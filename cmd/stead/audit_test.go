package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/server/audit"
)

// TestTheAuditLogHasWhatWasDoneAndNothingElse reads it back beside what was done: by root and by a client, with what was
// refused, and without what Secrets hold.
func TestTheAuditLogHasWhatWasDoneAndNothingElse(t *testing.T) {
	var dir string
	c := newCluster(t, nil, reachable, func(c *server.Config) {
		dir = filepath.Join(filepath.Dir(c.Socket), "audit")
		c.AuditDir, c.AuditBytes = dir, audit.MinBytes
	})
	file := filepath.Join(c.dir, "ann.json")
	c.must("client", "create", "--name", "ann", "-o", file, "--servers", strings.Join(c.server.Addresses(), ","))
	c.must("apply", "-f", "testdata/files.yaml", "--dry-run")
	c.must("apply", "-f", "testdata/files.yaml")
	c.must("apply", "-f", "testdata/files.yaml")
	c.must("get", "set")
	c.must("get", "secret", "pass", "-o", "yaml")
	c.refused("no set", "scale", "nobody", "--replicas", "3")
	c.config = file
	c.must("apply", "-f", "testdata/db.yaml", "--wait")
	c.host.OnExec(func(context.Context, runtime.ContainerID, runtime.Exec) (int, error) { return 0, nil })
	c.must("exec", "db-0", "--", "hello", "you")
	c.must("scale", "db", "--replicas", "1")
	c.refused("not for", "client", "create", "--name", "eve", "-o", filepath.Join(c.dir, "eve.json"), "--servers", "127.0.0.1:1")
	c.must("delete", "secret", "pass")
	c.config = ""
	c.must("node", "cordon", "host-a")

	var got []string
	lasting := map[string]int{}
	for line := range strings.Lines(c.must("audit", "-o", "json")) {
		var e audit.Line
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		who, _, _ := strings.Cut(e.Who, " (")
		if e.Server != "server-a" || e.At.IsZero() || who != "root" && e.From != "127.0.0.1" {
			t.Errorf("got %s", line)
		}
		if e.Verb == "audit" {
			continue // this very call
		}
		if e.Verb == "exec" {
			lasting[e.Call]++
		}
		got = append(got, strings.Join([]string{who, e.Verb, strings.Join(e.Objects, ","), e.Code, e.Detail}, "|"))
	}
	want := []string{
		"root|create client|client ann|OK|",
		"root|apply|configmap default/conf,secret default/pass,service default/db|OK|",
		"root|apply||OK|nothing changed",
		"root|get|secret default/pass|OK|",
		"root|scale|set default/nobody|NotFound|replicas 3",
		"admin ann|apply|set default/db|OK|",
		"admin ann|exec|member default/db-0||hello you",
		"admin ann|exec|member default/db-0|OK|hello you",
		"admin ann|scale|set default/db|OK|replicas 1",
		"admin ann|create client||PermissionDenied|",
		"admin ann|delete|secret default/pass|OK|background",
		"root|edit node|node host-a|OK|cordon true, 0 labels, 0 taints",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(lasting) != 1 {
		t.Errorf("the begin and the end of a command have calls %v", lasting)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	if err != nil || strings.Contains(string(kept), "in-clear") {
		t.Errorf("it shows a Secret (%v):\n%s", err, kept)
	}
	if out := c.must("audit", "--verb", "scale", "--who", "ann"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "set default/db") {
		t.Errorf("of ann's scale it shows\n%s", out)
	}
}
