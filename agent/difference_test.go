package agent

import (
	"testing"

	goproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// stateOf is a set by difference, between two numbers; base 0: all of it.
func stateOf(p records.Snapshot, base, number uint64) *proto.ToNode {
	d := wire.WholeSet(&p, "cluster.local")
	d.Base, d.Number = base, number
	doc, err := goproto.Marshal(d)
	if err != nil {
		panic(err)
	}
	return &proto.ToNode{Kind: &proto.ToNode_Pictures{Pictures: &proto.Pictures{Sequence: wire.Sequence(p.Sequence), Sets: [][]byte{doc}}}}
}

// What a member reads of its set follows differences. One that does not fit is not taken, and the set is
// asked for, once; in the next session it is as if nothing had been sent.
func TestMembersFollowTheirSetByDifferences(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		replicas := func(want int) {
			t.Helper()
			set := decode[struct{ Replicas int }](t, []byte(n.file(files.SetFile)))
			if set.Replicas != want {
				t.Errorf("set.json has %d replicas, want %d", set.Replicas, want)
			}
		}
		asked := func(want int) {
			t.Helper()
			n.script.with(func() {
				got := n.script.resends
				if len(got) != want || want > 0 && wire.ToSetRef(got[want-1].GetSets()[0]) != ref {
					t.Errorf("asked %v, want %d times", got, want)
				}
			})
		}
		n.script.with(func() {
			if !n.script.hellos[0].GetDifferences() {
				t.Error("the agent does not say that it knows differences")
			}
		})
		n.script.say(stateOf(picture(10, 1), 0, 3))
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		replicas(1)
		n.script.say(stateOf(picture(11, 2), 3, 4))
		replicas(2)
		n.script.say(stateOf(picture(13, 3), 5, 6))
		replicas(2)
		asked(1)
		n.script.say(stateOf(picture(14, 4), 6, 7))
		replicas(2)
		asked(1)
		n.script.say(stateOf(picture(15, 5), 0, 8))
		replicas(5)
		n.script.say(stateOf(picture(16, 6), 8, 9))
		replicas(6)
		asked(1)
		n.kill()
		n.script.always(stateOf(picture(17, 7), 9, 10))
		n.run()
		replicas(6)
		asked(2)
		if kept, ok := n.agent.snapshots.Find(spec.SetRef{Namespace: ref.Namespace, Name: ref.Name}); !ok || kept.Replicas != 6 {
			t.Errorf("the next agent holds %+v", kept)
		}
	})
}
