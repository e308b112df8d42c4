package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheFenceCommandEndsTheLivesOfASilentHost: of a set that wants its members replaced,
// and that time does not end, for they were begun before it wanted that. They begin
// elsewhere, once.
func TestTheFenceCommandEndsTheLivesOfASilentHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command := filepath.Join(dir, "fence")
	if err := os.WriteFile(command, []byte("#!/bin/sh\ncat >"+dir+"/$STEAD_NODE\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := newFenced(t, inMemory(t), command, "a", "b", "c")
	c.apply(shape{name: "db", replicas: 3})
	c.ready("db", 3)
	lost, before := c.host("db-1"), c.find("db-1")
	c.apply(shape{name: "db", replicas: 3, loss: "{policy: Replace, after: 1h}"})
	lost.reboot()
	c.until("it began elsewhere", func() bool { m := c.find("db-1"); return m.Token != before.Token && m.Ready })
	asked, err := os.ReadFile(filepath.Join(dir, string(lost.name)))
	if err != nil || !strings.Contains(string(asked), `"node":"`+string(lost.name)+`"`) || !strings.Contains(string(asked), `"lives":[{`) {
		t.Errorf("the command was asked %q, %v", asked, err)
	}
	after := c.find("db-1")
	if after.Token == before.Token || after.Node == before.Node || after.Address != before.Address {
		t.Errorf("db-1 is %+v, was %+v; want another life elsewhere with its address", after, before)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("hosts were fenced that are on: %v, %v", entries, err)
	}
	lost.start()
	c.until("the host is back", func() bool { return c.live() == 3 })
	c.ready("db", 3)
	if now := c.find("db-1"); now.Token != after.Token || len(c.audit.starts()) != 4 {
		t.Errorf("db-1 is %+v after %d starts; want %+v after 4", now, len(c.audit.starts()), after)
	}
}
