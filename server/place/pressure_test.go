package place

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// A node that is short of something gets no new life; a life returns to where its volumes or its room are.
func TestANodeThatIsShortOfSomethingGetsNothingNew(t *testing.T) {
	disk := records.NodeCondition{Type: records.DiskPressure, Status: "True", Message: "the disk has 0 free"}
	ofClass := disk
	ofClass.Class = "ssd"
	network := records.NodeCondition{Type: records.NetworkUnavailable, Status: "True", Message: "no nftables"}
	unknown := records.NodeCondition{Type: "SomethingNew", Status: "True"}
	claim := func(class string) spec.ClaimTemplate {
		c := spec.ClaimTemplate{}
		c.Metadata.Name, c.Spec.StorageClassName = "data", &class
		return c
	}
	volume := func(class string) *records.Volume { return &records.Volume{Class: class, Node: "a"} }
	for _, c := range []struct {
		name    string
		on      records.NodeCondition
		request Request
		want    spec.NodeName // "": it waits, for a has the condition, and b is cordoned
	}{
		{"a new life", disk, Request{}, ""},
		{"a condition that only a newer server knows", unknown, Request{}, "a"},
		{"it tolerates that", disk, Request{Template: &spec.MemberSpec{Tolerations: []spec.Toleration{{Key: "node.kubernetes.io/disk-pressure", Operator: "Exists"}}}}, "a"},
		{"it tolerates something else", disk, Request{Template: &spec.MemberSpec{Tolerations: []spec.Toleration{{Key: "node.kubernetes.io/memory-pressure", Operator: "Exists"}}}}, ""},
		{"its life before was there", disk, Request{Before: "a"}, "a"},
		{"its life before was elsewhere", disk, Request{Before: "b"}, ""},
		{"its volume is there", disk, Request{Claims: []spec.ClaimTemplate{claim("ssd")}, Volumes: map[spec.ClaimName]*records.Volume{"data": volume("ssd")}}, "a"},
		{"its volume is there, and the class is short", ofClass, Request{Claims: []spec.ClaimTemplate{claim("ssd")}, Volumes: map[spec.ClaimName]*records.Volume{"data": volume("ssd")}}, "a"},
		{"a volume is to be made in the class", ofClass, Request{Claims: []spec.ClaimTemplate{claim("ssd")}}, ""},
		{"one of a PersistentVolumeClaim is", ofClass, Request{Objects: []Object{{Name: "files", Class: "ssd"}}}, ""},
		{"a volume is to be made in another class", ofClass, Request{Claims: []spec.ClaimTemplate{claim("local")}}, "a"},
		{"it has no volumes", ofClass, Request{}, "a"},
		{"a new life where there is no network", network, Request{}, ""},
		{"one that was there before", network, Request{Before: "a"}, ""},
		{"one with a volume there", network, Request{Claims: []spec.ClaimTemplate{claim("ssd")}, Volumes: map[spec.ClaimName]*records.Volume{"data": volume("ssd")}}, ""},
		{"one that tolerates it", network, Request{Template: &spec.MemberSpec{Tolerations: []spec.Toleration{{Key: "node.kubernetes.io/network-unavailable", Operator: "Exists"}}}}, "a"},
	} {
		var none spec.MemberSpec
		nodes := []proof.Node{nodeOf(t, []string{"a"}, none), nodeOf(t, []string{"b cordoned"}, none)}
		nodes[0].Facts = &records.NodeFacts{Classes: []string{"local", "ssd"}, Conditions: []records.NodeCondition{c.on}}
		r := c.request
		r.ID = spec.Identity{Namespace: "default", Set: "db"}
		if r.Template == nil {
			r.Template = &none
		}
		if r.Before != "" {
			r.Ran = &none
		}
		n, no := New(nodes, nil, map[spec.NodeName]int{}).Choose(&r)
		switch {
		case c.want != "":
			if no != nil || n.Node.Name != c.want {
				t.Errorf("%s: got %v, %+v; want %s", c.name, n, no, c.want)
			}
		case no == nil:
			t.Errorf("%s: it starts on %s", c.name, n.Node.Name)
		case no.Reason != causes.BlockedPressure || !strings.Contains(no.Text, "node a") || !strings.Contains(no.Text, "has "+c.on.Type+": "+c.on.Message):
			t.Errorf("%s: got %+v", c.name, no)
		}
	}
}
