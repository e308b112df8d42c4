package records

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestAStoreThatIsNoContinuationIsNoticed(t *testing.T) {
	link := func(n int64, nonce string) Link { return Link{Number: n, Nonce: nonce} }
	known := Known{Cluster: "c", Origin: "e1", Term: 5, At: spec.Sequence{Epoch: 2, Rev: 100}, Link: link(7, "g")}
	chain := Chain{Links: []Link{link(6, "f"), link(7, "g"), link(8, "h")}}
	now := Known{Cluster: "c", Origin: "e1", Term: 5, At: spec.Sequence{Epoch: 2, Rev: 100}}
	for name, c := range map[string]struct {
		known Known
		now   func(*Known)
		chain Chain
		want  string // in the answer; "": no gap
	}{
		"it is as it was":                     {known, func(*Known) {}, chain, ""},
		"it went on":                          {known, func(n *Known) { n.Term, n.At.Rev = 6, 101 }, chain, ""},
		"nothing is known":                    {Known{}, func(n *Known) { n.At.Rev = 1 }, Chain{}, ""},
		"a restore that was declared":         {known, func(n *Known) { n.At, n.Origin, n.Term = spec.Sequence{Epoch: 3, Rev: 1}, "e2", 1 }, Chain{}, ""},
		"another cluster of Stead":            {known, func(n *Known) { n.Cluster = "d" }, chain, "cluster d"},
		"another cluster, in a higher epoch":  {known, func(n *Known) { n.Cluster, n.At.Epoch = "d", 3 }, chain, ""},
		"a lower epoch":                       {known, func(n *Known) { n.At = spec.Sequence{Epoch: 1, Rev: 900} }, chain, "epoch 1"},
		"restored into another etcd":          {known, func(n *Known) { n.Origin, n.At.Rev = "e2", 900 }, chain, "e2"},
		"an older state":                      {known, func(n *Known) { n.At.Rev = 99 }, chain, "revision 99"},
		"a lower term":                        {known, func(n *Known) { n.Term = 4 }, chain, "term 4"},
		"bumped over what is known":           {known, func(n *Known) { n.At.Rev = 1_000_100 }, Chain{Links: chain.Links[:1]}, "missing"},
		"bumped, and others led since":        {known, func(n *Known) { n.At.Rev = 1_000_100 }, Chain{Links: []Link{link(6, "f"), link(7, "x"), link(8, "y")}}, "others"},
		"the link is older than all it keeps": {known, func(n *Known) { n.At.Rev = 5000 }, Chain{Links: []Link{link(300, "z")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := now
			c.now(&n)
			got := c.known.Gap(n, c.chain)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsKnownOnlyGrowsInAnEpoch(t *testing.T) {
	nodes := map[spec.NodeName]spec.UID{"n1": "u1"}
	known := Known{Cluster: "c", Origin: "e1", Term: 5, At: spec.Sequence{Epoch: 2, Rev: 100}, Link: Link{7, "g"}, Nodes: nodes}
	for name, c := range map[string]struct{ now, want Known }{
		"nothing new":    {Known{At: spec.Sequence{Epoch: 2, Rev: 50}, Term: 4, Link: Link{6, "f"}}, known},
		"all of it":      {Known{Cluster: "c", Origin: "e1", Term: 6, At: spec.Sequence{Epoch: 2, Rev: 101}, Link: Link{8, "h"}}, Known{Cluster: "c", Origin: "e1", Term: 6, At: spec.Sequence{Epoch: 2, Rev: 101}, Link: Link{8, "h"}, Nodes: nodes}},
		"a part":         {Known{At: spec.Sequence{Epoch: 2, Rev: 101}}, Known{Cluster: "c", Origin: "e1", Term: 5, At: spec.Sequence{Epoch: 2, Rev: 101}, Link: Link{7, "g"}, Nodes: nodes}},
		"an older epoch": {Known{At: spec.Sequence{Epoch: 1, Rev: 900}, Term: 9}, known},
		"a restore":      {Known{Cluster: "c", Origin: "e2", Term: 1, At: spec.Sequence{Epoch: 3, Rev: 10}}, Known{Cluster: "c", Origin: "e2", Term: 1, At: spec.Sequence{Epoch: 3, Rev: 10}, Nodes: nodes}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := known.Add(c.now); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
