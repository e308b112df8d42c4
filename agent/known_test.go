package agent

import (
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// knows has the server say that it knows of a store at a revision.
func (s *script) knows(rev int64, held bool) {
	s.with(func() {
		s.known = wire.Known(records.Known{Origin: "e1", Term: 3, At: spec.Sequence{Epoch: 1, Rev: rev}, Link: records.Link{Number: rev, Nonce: "x"}})
		s.held = held
	})
}

// said is what the node said in its last hello that it knows.
func (s *script) said() (known records.Known) {
	s.with(func() { known = wire.ToKnown(s.hellos[len(s.hellos)-1].GetKnown()) })
	return known
}

func TestWhatAnyMessageSaysOfTheStoreIsKeptAndSaid(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		wants := func(what string, rev int64) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			var disk records.Known
			must(t, durable.GetJSON(filepath.Join(n.root, "known.json"), &disk))
			if disk.At != (spec.Sequence{Epoch: 1, Rev: rev}) {
				t.Errorf("after %s %+v is on disk, want revision %d", what, disk, rev)
			}
		}
		n.script.say(wanted(10))
		wants("a list", 10)
		n.script.say(pictures(20, true))
		wants("pictures", 20)
		n.script.knows(30, false)
		wants("a pong", 30)
		n.script.say(pictures(25, false))
		wants("what is older", 30)
		n.kill()
		n.run()
		synctest.Wait()
		if got := n.script.said(); got.At.Rev != 30 || got.Origin != "e1" || got.Term != 3 || got.Link != (records.Link{Number: 30, Nonce: "x"}) {
			t.Errorf("its hello says that it knows %+v", got)
		}
		n.kill()
		n.script.knows(40, false)
		n.run()
		wants("a welcome", 40)
	})
}

func TestOfAStoreThatIsHeldNothingIsLearnt(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.knows(30, false)
		time.Sleep(time.Minute)
		n.script.knows(1_000_000, true)
		time.Sleep(time.Minute)
		n.kill()
		n.run()
		time.Sleep(time.Minute)
		n.kill()
		n.run()
		synctest.Wait()
		if got := n.script.said(); got.At.Rev != 30 {
			t.Errorf("it knows %+v", got)
		}
	})
}

// A server whose store is held answers pings and tells no list: what it ordered before may
// be over since.
func TestWhileTheStoreIsHeldNoGuardedLifeBeginsAndOpenOnesGoOn(t *testing.T) {
	guarded(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.bounded(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.script.with(func() { n.script.held = true })
		time.Sleep(time.Minute)
		if got := n.running(); len(got) != 1 || got[0] != tok(5) {
			t.Fatalf("of the open life, whose pings are answered, %v runs", got)
		}
		other := n.bounded(6, records.GoalRun)
		other.Member.ID.Ordinal, other.Member.Address = 1, netip.MustParseAddr("10.88.0.3")
		n.script.say(wanted(11, other)) // as if told just before
		time.Sleep(time.Minute)
		if got := n.host.RunningTokens(other.Member.ID); len(got) > 0 {
			t.Errorf("a guarded life began: %v", got)
		}
		n.script.with(func() { n.script.held = false })
		time.Sleep(time.Minute)
		if got := n.host.RunningTokens(other.Member.ID); len(got) != 1 {
			t.Errorf("when the hold was over, %v runs", got)
		}
	})
}
