package main

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

func TestAShortHostIsShownAndGetsNothingNew(t *testing.T) {
	c := newCluster(t, nil)
	says := func(want string, args ...string) {
		t.Helper()
		c.until(strings.Join(args, " ")+" says "+want, func() bool {
			_, out := c.stead(args...)
			return strings.Contains(out, want)
		})
	}
	if code, out := c.stead("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	if code, out := c.stead("scale", "db", "--replicas", "1", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	c.agent.Load().SetConditions([]records.NodeCondition{{Type: records.DiskPressure, Message: "the disk of /var has 1Gi of 50Gi free"}})
	says("DiskPressure", "node", "ls")
	says("host-a has DiskPressure: the disk of /var has 1Gi of 50Gi free. No new member is placed there", "status")
	says("type: DiskPressure", "describe", "node", "host-a")
	if code, out := c.stead("restart", "db-0"); code != exitDone {
		t.Fatal(out)
	}
	if code, out := c.stead("wait", "db", "--timeout", "2m"); code != exitDone { // it returns to its volume
		t.Fatal(out)
	}
	says("that node has DiskPressure", "get", "events")
	if code, out := c.stead("scale", "db", "--replicas", "4"); code != exitDone { // db-1 and db-2 have volumes there, db-3 has not
		t.Fatal(out)
	}
	says("node host-a has DiskPressure: the disk of /var", "explain", "db-3")
	says("NodePressure", "get", "events")
	c.agent.Load().SetConditions(nil)
	if code, out := c.stead("wait", "db", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	if _, out := c.stead("node", "ls"); strings.Contains(out, "DiskPressure") {
		t.Errorf("it is over, and still shown:\n%s", out)
	}
}
