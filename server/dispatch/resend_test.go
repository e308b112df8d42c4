package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// shown are the sets of a message, with what they start from: "db 0>4" is whole.
func shown(t *testing.T, p *proto.Pictures) (list []string) {
	t.Helper()
	sets, err := wire.ToSets(p.GetSets())
	if err != nil || len(p.GetPicturesJson()) > 0 {
		t.Fatalf("%v, and %d documents", err, len(p.GetPicturesJson()))
	}
	for _, d := range sets {
		words := fmt.Sprintf("%s %d>%d", d.GetSet().GetName(), d.GetBase(), d.GetNumber())
		if d.GetGone() {
			words += " gone"
		} else if d.GetBrief() {
			words += " brief"
		}
		if d.GetTurned() {
			words += " turned"
		}
		list = append(list, words)
	}
	return list
}

func resendOf(names ...spec.SetName) *proto.FromNode {
	m := &proto.Resend{}
	for _, name := range names {
		m.Sets = append(m.Sets, wire.SetName(spec.SetRef{Namespace: "default", Name: name}))
	}
	return &proto.FromNode{Kind: &proto.FromNode_Resend{Resend: m}}
}

// A node is sent each set whole once, then what differs, and the whole again when it asks.
func TestANodeIsSentASetOnceAndThenWhatDiffers(t *testing.T) {
	r := newStill(t)
	r.begin()
	round := func() { r.catchUp(); r.server.snapshots.round(cache.Changes{All: true}) }
	round()
	h := n1
	h.differences = true
	n := r.hand(h)
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"at first", func() {}, "db 0>1"},
		{"nothing", func() {}, ""},
		{"a member came", func() { r.live(1, 11, "n2", "uid2") }, "db 1>4"},
		{"it asks", func() { n.Receive(resendOf("db")) }, "db 0>4"},
		{"it asks for what never was", func() { n.Receive(resendOf("kv", "Not a name")) }, "kv 0>6 gone"},
		{"two steps at once", func() {
			r.live(2, 12, "n2", "uid2")
			round()
			r.live(3, 12, "n2", "uid2")
		}, "db 4>7 db 7>8"},
		{"it asks when something changed", func() { r.live(4, 12, "n2", "uid2"); n.Receive(resendOf("db")) }, "db 0>9"},
		{"the set went", func() { r.Commit(store.Del(store.SetKey(refDB))) }, "db 0>10 gone"},
		{"and came", func() { r.Record(store.SetKey(refDB), testSet(1)) }, "db 0>11"},
	} {
		step.change()
		round()
		if got := strings.Join(shown(t, n.tells().pictures), " "); got != step.want {
			t.Errorf("%s: sent %q, want %q", step.name, got, step.want)
		}
	}
}

// What a node asks for is bounded (SAFETY S21).
func TestANodeCannotAskForAnything(t *testing.T) {
	r := newStill(t)
	n := r.hand(n1)
	ask := func(from, many int) {
		var names []spec.SetName
		for i := range many {
			names = append(names, spec.SetName(fmt.Sprint("s", from+i)))
		}
		n.Receive(resendOf(names...))
	}
	ask(0, maxResends)
	if err := n.se.ctx.Err(); err != nil {
		t.Fatalf("it asked for as many as it may: %v", err)
	}
	ask(maxResends, 10*maxResends)
	if err := n.Send(); status.Code(err) != codes.ResourceExhausted || len(n.se.resend) > maxResends+1 {
		t.Errorf("it asked for more: %v; %d are kept", err, len(n.se.resend))
	}
	if r.server.Refusals()[LimitResend] != 1 {
		t.Errorf("counted %v", r.server.Refusals())
	}
}

// What nodes are sent of a history is read and marshalled once; each gets what it lacks.
func TestAHistoryIsMarshalledOnceForAllNodes(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.live(1, 11, "n2", "uid2")
	one, two, old := n1, hello{node: "n2", uid: "uid2", boot: "b1", cluster: "c1"}, hello{node: "n3", uid: "uid3", boot: "b1", cluster: "c1"}
	one.differences, two.differences = true, true
	r.live(2, 12, "n3", "uid3")
	nodes := []*hand{r.hand(one), r.hand(two), r.hand(old)}
	for step, want := range []string{"1 2", "3", "4 5"} {
		if step == 1 {
			nodes[1].tells() // as now, so that both lack the same from here on
		}
		last := int64([]int{2, 3, 5}[step])
		r.tells(0, 1, last)
		r.server.snapshots.round(cache.Changes{Sets: map[spec.SetRef]bool{refDB: true}})
		var docs [][]byte
		for i, n := range nodes {
			p := n.tells().pictures
			doc := p.GetHistories()
			got, err := wire.ToHistories(doc)
			if i == 2 {
				if len(doc) > 0 {
					t.Error("a node that does not know differences is sent one")
				}
				got, err = wire.ToDocuments[records.History](p.GetHistoriesJson())
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("step %d, node %d: %v, %v", step, i, got, err)
			}
			var numbers []string
			for _, c := range got[0].Changes {
				numbers = append(numbers, fmt.Sprint(c.Number))
			}
			if text := strings.Join(numbers, " "); text != want {
				t.Errorf("step %d, node %d: sent %q, want %q", step, i, text, want)
			}
			docs = append(docs, doc...)
		}
		if &docs[0][0] != &docs[1][0] {
			t.Errorf("step %d: it was marshalled for each", step)
		}
	}
}
