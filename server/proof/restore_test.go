package proof

import (
	"encoding/json"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func counted(done bool, nodes ...records.CountNode) *records.Count {
	return &records.Count{Epoch: 2, Nodes: nodes, By: "root", Done: done}
}

func remembered(name spec.NodeName) records.CountNode {
	return records.CountNode{Name: name, UID: spec.UID("uid-" + name), From: records.FromServer}
}

func TestMissingNodes(t *testing.T) {
	node := func(name spec.NodeName, uid spec.UID, epoch int64) Node {
		n := Node{Node: &records.Node{Name: name, UID: uid}}
		if epoch > 0 {
			n.Facts = &records.NodeFacts{Name: name, UID: uid, Epoch: epoch}
		}
		return n
	}
	cases := []struct {
		name  string
		epoch int64
		count *records.Count
		nodes []Node
		want  string
	}{
		{name: "a store that was never restored waits for nobody", epoch: 1, nodes: []Node{node("a", "ua", 0)}, want: "null"},
		{name: "who was heard in this epoch is not missing", epoch: 2, count: counted(false, remembered("a"), remembered("b")),
			nodes: []Node{node("a", "uid-a", 2), node("b", "uid-b", 1)}, want: `[{"name":"b","uid":"uid-b","from":"server"}]`},
		{name: "a machine that came back under another name was heard", epoch: 2, count: counted(false, remembered("a")),
			nodes: []Node{node("z", "uid-a", 2)}, want: "null"},
		{name: "another machine under its name does not answer for it", epoch: 2, count: counted(false, remembered("a")),
			nodes: []Node{node("a", "other", 2)}, want: `[{"name":"a","uid":"uid-a","from":"server"}]`},
		{name: "a count of an earlier epoch excuses nobody", epoch: 3, count: counted(true, records.CountNode{Name: "a", UID: "ua", Off: "root"}),
			nodes: []Node{node("a", "ua", 2)}, want: `[{"name":"a","uid":"ua","from":"store"}]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(MissingNodes(c.epoch, c.count, c.nodes))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}
