package dispatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

func conditionsOf(t *testing.T, list ...records.NodeCondition) *proto.FromNode {
	t.Helper()
	doc, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return &proto.FromNode{Kind: &proto.FromNode_Conditions{Conditions: &proto.Conditions{ConditionsJson: doc}}}
}

var shortOfDisk = records.NodeCondition{Type: records.DiskPressure, Status: "True", Message: "1Gi free"}

// What a node is short of is stored when that changes, and not for each figure; nobody else's decision depends on it.
func TestWhatANodeIsShortOfIsStoredWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		h := r.hand(n1)
		h.tells()
		hellos, _ := r.Get(store.HellosKey)
		say := func(want string, wantAgain bool, list ...records.NodeCondition) store.Rev {
			t.Helper()
			h.Receive(conditionsOf(t, list...))
			_, again, err := h.se.sendChanges(handStream{h: h}, h.state)
			if err != nil || again != wantAgain {
				t.Fatalf("again %v, %v", again, err)
			}
			if facts := r.facts(); facts.ShortOf() != want {
				t.Errorf("stored is %+v, want %q", facts.Conditions, want)
			}
			kv, _ := r.Get(store.FactsKey("n1"))
			return kv.Mod
		}
		first := say("DiskPressure", false, shortOfDisk)
		other := shortOfDisk
		other.Message = "2Gi free"
		if say("DiskPressure", false, other) != first {
			t.Error("another figure was stored")
		}
		say("DiskPressure", true) // it changes faster than it is stored
		time.Sleep(conditionTime)
		say("", false)
		if now, _ := r.Get(store.HellosKey); now.Mod != hellos.Mod {
			t.Error("others' decisions were made anew because a node is short of something")
		}
	})
}

func TestWhatANodeSaysOfItsConditionsIsBounded(t *testing.T) {
	var many []records.NodeCondition
	for i := range 2 * maxConditions {
		many = append(many, records.NodeCondition{Type: records.DiskPressure, Class: fmt.Sprintf("c%d", i)})
	}
	for name, c := range map[string]struct {
		said []records.NodeCondition
		want int
	}{
		"none":                   {nil, 0},
		"what nobody knows":      {[]records.NodeCondition{{Type: "Bored"}, shortOfDisk}, 1},
		"a class that cannot be": {[]records.NodeCondition{{Type: records.DiskPressure, Class: "../x"}}, 0},
		"the same twice":         {[]records.NodeCondition{shortOfDisk, shortOfDisk}, 1},
		"too many":               {many, maxConditions},
		"too many words":         {[]records.NodeCondition{{Type: records.PIDPressure, Message: strings.Repeat("x", 9999) + "\x1b[2J"}}, 1},
	} {
		got := saneConditions(c.said)
		if len(got) != c.want {
			t.Errorf("%s: %d are left, want %d", name, len(got), c.want)
		}
		for _, g := range got {
			if len(g.Message) > conditionBytes || strings.Contains(g.Message, "\x1b") || g.Status != "True" {
				t.Errorf("%s: %+v", name, g)
			}
		}
	}
	for name, m := range map[string]struct {
		doc  string
		want codes.Code
	}{
		"no JSON":  {"{", codes.InvalidArgument},
		"too long": {strings.Repeat(" ", factsBytes+1), codes.ResourceExhausted},
	} {
		r := newStill(t)
		h := r.hand(n1)
		h.Receive(&proto.FromNode{Kind: &proto.FromNode_Conditions{Conditions: &proto.Conditions{ConditionsJson: []byte(m.doc)}}})
		if err := h.Send(); status.Code(err) != m.want {
			t.Errorf("%s: got %v, want %v", name, err, m.want)
		}
	}
}
