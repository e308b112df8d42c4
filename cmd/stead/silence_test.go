package main

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
)

func silentNode(name, status string) *proto.Object {
	return &proto.Object{Kind: "node", Name: name, Json: []byte(`{"metadata":{"name":"` + name + `"},"spec":{"name":"` + name + `"},"status":` + status + `}`)}
}

// TestNodesWithoutASessionAreShown: for how long, and what their lives wait for.
func TestNodesWithoutASessionAreShown(t *testing.T) {
	nodes := []*proto.Object{
		silentNode("host-a", `{"state":"Ready","hostIP":"10.0.0.1"}`),
		silentNode("host-b", `{"state":"Silent","silentSeconds":42,"waits":"of its lives: 1 will have ended at their deadline in 20s"}`),
		silentNode("host-c", `{"state":"Lost","silentSeconds":400}`),
		silentNode("host-d", `{"state":"Silent"}`),
	}
	var states []string
	for _, n := range nodes {
		cells, wide, err := rowOf(nodeRow)(n)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, cells[1].(string)+"|"+wide[len(wide)-1].(string))
	}
	if got, want := strings.Join(states, "\n"), "Ready|\nSilent 42s|of its lives: 1 will have ended at their deadline in 20s\nLost 6m|\nSilent|"; got != want {
		t.Errorf("get nodes says\n%s\nwant\n%s", got, want)
	}
	var out strings.Builder
	if err := printNodes(&out, nodes, ""); err != nil {
		t.Fatal(err)
	}
	const want = `nodes    1 of 4 have a session; the others:
         host-b Silent 42s: of its lives: 1 will have ended at their deadline in 20s
         host-c Lost 6m
         host-d Silent
`
	if out.String() != want {
		t.Errorf("status says\n%s\nwant\n%s", out.String(), want)
	}
}
