package dispatch

import (
	"context"
	"maps"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// What a session hears is judged message by message; one that cannot be is its end.
func TestWhatASessionHearsOfLives(t *testing.T) {
	report := records.Report{ID: ident(0), Token: token(10), Seq: 1, Phase: records.PhaseRunning}
	over := report
	over.Phase = records.PhaseStopped
	doc := func(r records.Report) []byte { return store.Encode(r) }
	long := func(bytes int) []byte {
		d := doc(report)
		return append(d, strings.Repeat(" ", bytes-len(d))...)
	}
	reports := func(docs ...[]byte) *proto.FromNode {
		return &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: docs}}}
	}
	many := func(n int) map[spec.LifeID]bool {
		holds := map[spec.LifeID]bool{}
		for i := range n {
			holds[spec.LifeID{ID: ident(i + 1), Token: token(1)}] = true
		}
		return holds
	}
	held := map[spec.LifeID]bool{{ID: ident(0), Token: token(10)}: true}
	for _, c := range []struct {
		name    string
		holds   map[spec.LifeID]bool
		msg     *proto.FromNode
		end     codes.Code
		waits   int // reports
		refused int
		has     int  // lives, afterwards
		wakes   bool // there is more to tell or to store by it
	}{
		{"a life that began", nil, reports(doc(report)), codes.OK, 1, 0, 1, true},
		{"one that was begun", held, reports(doc(report)), codes.OK, 1, 0, 1, false},
		{"one that is over", held, reports(doc(over)), codes.OK, 1, 0, 0, true},
		{"one that was over", nil, reports(doc(over)), codes.OK, 1, 0, 0, false},
		{"a report as long as may be", held, reports(long(reportBytes)), codes.OK, 1, 0, 1, false},
		{"a longer one, beside another", held, reports(long(reportBytes+1), doc(report)), codes.OK, 1, 1, 1, false},
		{"no document", held, reports([]byte("{")), codes.InvalidArgument, 0, 0, 1, false},
		{"as many lives as may be", many(maxHoldings - 1), reports(doc(report)), codes.OK, 1, 0, maxHoldings, true},
		{"one more", many(maxHoldings), reports(doc(report)), codes.ResourceExhausted, 0, 1, maxHoldings + 1, true},
		{"a second hello", held, &proto.FromNode{Kind: &proto.FromNode_Hello{Hello: n1.message()}}, codes.InvalidArgument, 0, 0, 1, false},
		{"a word of a newer agent", held, &proto.FromNode{}, codes.OK, 0, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			h := r.hand(n1)
			h.tells()
			h.se.holding = map[spec.LifeID]bool{}
			maps.Copy(h.se.holding, c.holds)
			h.Receive(c.msg)
			if got := status.Code(context.Cause(h.se.ctx)); got != c.end && (c.end != codes.OK || h.se.ctx.Err() != nil) {
				t.Errorf("the session: %v", context.Cause(h.se.ctx))
			}
			if got := len(r.server.reports.pending[h.se]); got != c.waits {
				t.Errorf("%d reports wait", got)
			}
			if got := strings.Count(r.logs.String(), "message of a node refused"); got != c.refused {
				t.Errorf("logged %s", r.logs)
			}
			if got := len(h.se.holding); got != c.has {
				t.Errorf("it has %d lives", got)
			}
			if woken := len(h.se.out.filled.C()) == 1; woken != c.wakes || h.se.hasChanged() != c.wakes {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

// A session wakes by itself for a pong that waits, and for nothing else.
func TestASessionSleepsUnlessAPongWaits(t *testing.T) {
	h := newStill(t).hand(n1)
	h.tells()
	if again, err := h.se.flush(handStream{h: h}); again != nil || err != nil {
		t.Errorf("nobody asked for a pong, and it wakes for one, %v", err)
	}
	h.se.out.addPong(pong{id: 1, read: 1 << 60})
	if again, err := h.se.flush(handStream{h: h}); again == nil || err != nil {
		t.Errorf("a pong waits, and it does not wake for it, %v", err)
	}
}
