package session

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// state is a set of so many peers, all of it.
func state(rev int64, number uint64, replicas, peers int) *proto.SetDifference {
	s := picture(rev, replicas)
	for o := range peers {
		s.Peers = append(s.Peers, peer(o))
	}
	d := wire.WholeSet(&s, "d")
	d.Number = number
	return d
}

func peer(ordinal int) records.Peer {
	id := spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: ordinal}
	return records.Peer{Name: id.MemberName(), Ordinal: ordinal, FQDN: records.MemberFQDN(id, "", "d"), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(ordinal)})}
}

// part is a difference between two numbers, in which one peer came and one left.
func part(rev int64, base, number uint64, came, left int) *proto.SetDifference {
	p := peer(came)
	return &proto.SetDifference{
		Set: wire.SetName(ref), Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), Base: base, Number: number,
		Peers: []*proto.SetPeer{wire.SetPeer(&records.Snapshot{Ref: ref}, &p, "d")}, Left: []int32{int32(left)},
	}
}

func inBrief(d *proto.SetDifference) *proto.SetDifference {
	d.Brief = true
	return d
}

func turned(d *proto.SetDifference) *proto.SetDifference {
	d.Turned = true
	return d
}

// A difference is taken by who has what it starts from, in this session; another keeps what it has
// until the set comes whole. Neither goes back.
func TestADifferenceIsTakenWhereItFits(t *testing.T) {
	gone := &proto.SetDifference{Set: wire.SetName(ref), Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: 30}), Number: 9, Gone: true}
	for _, c := range []struct {
		name  string
		seq   int64
		sets  []*proto.SetDifference
		gap   bool
		want  []int // the ordinals of the peers; nil: the set is gone
		again bool  // in another session
	}{
		{"it fits", 11, []*proto.SetDifference{part(11, 5, 6, 3, 0)}, false, []int{1, 2, 3}, false},
		{"one after the other", 12, []*proto.SetDifference{part(11, 5, 6, 3, 0), part(12, 6, 8, 0, 2)}, false, []int{0, 1, 3}, false},
		{"one between is missing", 12, []*proto.SetDifference{part(12, 6, 8, 3, 0)}, true, []int{0, 1, 2}, false},
		{"it starts from an earlier one", 12, []*proto.SetDifference{part(12, 4, 8, 3, 0)}, true, []int{0, 1, 2}, false},
		{"it fits, but that was another session", 11, []*proto.SetDifference{part(11, 5, 6, 3, 0)}, true, []int{0, 1, 2}, true},
		{"it fits, but for a set in brief", 11, []*proto.SetDifference{inBrief(part(11, 5, 6, 3, 0))}, true, []int{0, 1, 2}, false},
		{"it is turned to brief", 11, []*proto.SetDifference{turned(inBrief(part(11, 5, 6, 3, 0)))}, false, []int{1, 2, 3}, false},
		{"it is turned, and was so already", 11, []*proto.SetDifference{turned(part(11, 5, 6, 3, 0))}, true, []int{0, 1, 2}, false},
		{"there and back", 12, []*proto.SetDifference{turned(inBrief(part(11, 5, 6, 3, 0))), turned(part(12, 6, 7, 4, 1))}, false, []int{2, 3, 4}, false},
		{"what fits follows a gap", 13, []*proto.SetDifference{part(12, 6, 8, 3, 0), part(13, 5, 9, 4, 0)}, true, []int{0, 1, 2}, false},
		{"all of it", 12, []*proto.SetDifference{state(12, 8, 1, 1)}, false, []int{0}, false},
		{"an older whole", 12, []*proto.SetDifference{state(9, 8, 1, 1)}, false, []int{0, 1, 2}, false},
		{"an older whole in the other form", 12, []*proto.SetDifference{inBrief(state(9, 8, 1, 1))}, false, []int{0}, false},
		{"an older message", 9, []*proto.SetDifference{part(9, 5, 6, 3, 0)}, false, []int{0, 1, 2}, false},
		{"it is gone", 30, []*proto.SetDifference{gone}, false, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := OpenSnapshots(Tmpfs(t.TempDir()), slog.New(slog.DiscardHandler))
			cache.Apply(spec.Sequence{Epoch: 1, Rev: 10}, true, []*proto.SetDifference{state(10, 5, 3, 3)}, "d")
			before, _ := cache.Find(ref)
			if c.again {
				cache.NewSession()
			}
			_, gaps := cache.Apply(spec.Sequence{Epoch: 1, Rev: c.seq}, false, c.sets, "d")
			var got []int
			now, ok := cache.snapshots[ref]
			for _, p := range now.Peers {
				got = append(got, p.Ordinal)
				if p != peer(p.Ordinal) {
					t.Errorf("got %+v", p)
				}
			}
			if !slices.Equal(got, c.want) || ok != (c.want != nil) || (len(gaps) > 0) != c.gap {
				t.Errorf("got %v, gaps %v", got, gaps)
			}
			if len(before.Peers) != 3 || before.Peers[0] != peer(0) {
				t.Error("what was handed out before changed")
			}
			// After a gap, or what was refused, nothing fits but the whole.
			if c.gap {
				cache.Apply(spec.Sequence{Epoch: 1, Rev: 40}, false, []*proto.SetDifference{state(40, 20, 1, 1), part(40, 20, 21, 1, 0)}, "d")
				if now, _ := cache.Find(ref); len(now.Peers) != 1 || now.Peers[0].Ordinal != 1 {
					t.Errorf("the whole, and a difference: got %+v", now.Peers)
				}
			}
		})
	}
}

// A server that saw no change since sends a set as it was dated then: who held it in the other form takes it,
// but not from a server that is behind.
func TestASetInTheOtherFormIsTakenThoughItIsOlder(t *testing.T) {
	dir := Tmpfs(t.TempDir())
	c := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	c.Apply(spec.Sequence{Epoch: 1, Rev: 13}, true, []*proto.SetDifference{state(13, 5, 3, 3)}, "d")
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	c = OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	for _, of := range []struct {
		rev   int64
		brief bool
	}{{12, false}, {17, true}} {
		c.Apply(spec.Sequence{Epoch: 1, Rev: of.rev}, true, []*proto.SetDifference{inBrief(state(12, 1, 3, 3))}, "d")
		if now := c.snapshots[ref]; now.Brief != of.brief || now.Sequence != (spec.Sequence{Epoch: 1, Rev: 13}) {
			t.Errorf("of a server at %d: brief %v of %v", of.rev, now.Brief, now.Sequence)
		}
	}
}

// What does not fit is asked for once, until it comes.
func TestAGapIsAskedForOnce(t *testing.T) {
	s := &Session{c: &Client{cfg: Config{Outbox: NewOutbox(0, 0, nil)}}, resend: resend{asked: map[spec.SetRef]bool{}}}
	gaps := []spec.SetRef{ref}
	s.askAgain(nil, gaps)
	if m := s.resendMessage(); len(m.GetResend().GetSets()) != 1 || wire.ToSetRef(m.GetResend().GetSets()[0]) != ref {
		t.Errorf("asked %v", m)
	}
	s.askAgain(nil, gaps)
	if m := s.resendMessage(); m != nil {
		t.Errorf("asked again before it came: %v", m)
	}
	s.askAgain([]*proto.SetDifference{state(1, 1, 1, 1)}, nil)
	s.askAgain(nil, gaps)
	if m := s.resendMessage(); m == nil {
		t.Error("not asked for another gap")
	}
}
