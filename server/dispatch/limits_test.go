package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// written counts the bytes that are written under a prefix until the test ends.
func (r *rig) written(prefix string) func() int {
	r.t.Helper()
	rev, _, err := r.Store.Snapshot(r.t.Context(), prefix)
	if err != nil {
		r.t.Fatal(err)
	}
	w, err := r.Store.Watch(r.t.Context(), prefix, rev)
	if err != nil {
		r.t.Fatal(err)
	}
	sums := make(chan int, 1)
	sums <- 0
	go func() { // ends with the watch
		for {
			b, err := w.Next(context.Background())
			if err != nil {
				return
			}
			for _, ev := range b.Events {
				sums <- <-sums + len(ev.Key) + len(ev.Value)
			}
		}
	}()
	r.t.Cleanup(w.Close)
	return func() int { n := <-sums; sums <- n; return n }
}

// A node that reports without end, as long as it can, has no more written than it may, which
// is what the store can forget again; others are heard meanwhile.
func TestANodeCannotFillTheStoreWithReports(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.live(1, 11, "n2", "uid2")
	liar, honest := r.connect(n1), r.connect(n2)
	liar.welcome()
	honest.welcome()
	const left = 64 << 10
	begun, sum := time.Now(), r.written(store.KindReport+"/")
	r.server.writes.charge("n1", allowanceBytes-left) // by what it said before
	long := strings.Repeat("x", messageBytes-10)
	for seq := int64(1); r.server.Refusals()[LimitRate] == 0; seq++ {
		if seq > 100*left/messageBytes {
			t.Fatal("it is never held up")
		}
		liar.report(records.Report{ID: ident(0), Token: token(10), Seq: seq, Phase: records.PhaseRunning, Message: fmt.Sprint(seq, long)})
		liar.ping(seq) // what was sent was read
		liar.pong()
	}
	honest.report(records.Report{ID: ident(1), Token: token(11), Seq: 1, Phase: records.PhaseRunning})
	if got := honest.stored(); got.GetSeq() != 1 || got.GetStale() {
		t.Errorf("another node's report: %v", got)
	}
	if got, most := sum(), left+int(time.Since(begun).Seconds()+1)*allowanceSecond+reportBytes; got > most {
		t.Errorf("%d bytes were written; want at most %d", got, most)
	}
}

func TestWhatANodeMayHaveWrittenGrowsWithTime(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		name  string
		purse balance
		after time.Duration
		want  int64
	}{
		{"a node that never wrote", balance{}, 0, allowanceBytes},
		{"one that wrote all", balance{0, at}, 0, 0},
		{"... a while ago", balance{0, at}, 10 * time.Second, 10 * allowanceSecond},
		{"one that overdrew", balance{-allowanceSecond, at}, time.Second, 0},
		{"it never has more than at first", balance{allowanceBytes - 1, at}, time.Hour, allowanceBytes},
	} {
		if got := c.purse.now(at.Add(c.after)); got != c.want {
			t.Errorf("%s: %d; want %d", c.name, got, c.want)
		}
	}
}

func TestANodeMayWriteWhileItHasSomethingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAllowance()
		a.charge("n1", allowanceBytes-1)
		if !a.mayWrite("n1") {
			t.Error("a byte is left, and it may not write")
		}
		a.charge("n1", 1)
		if a.mayWrite("n1") {
			t.Error("nothing is left, and it may write")
		}
		if !a.mayWrite("n2") {
			t.Error("another node may not write")
		}
		time.Sleep(time.Second)
		if !a.mayWrite("n1") {
			t.Error("a second later it may not write")
		}
	})
}

func TestAnIdentityThatCanBeAKeyIsAMembers(t *testing.T) {
	for id, want := range map[spec.Identity]bool{
		{Namespace: "default", Set: "db", Ordinal: 0}:  true,
		{Namespace: "default", Set: "db", Ordinal: -1}: false,
		{Namespace: "default", Set: "a/b"}:             false,
		{Namespace: "default"}:                         false,
		{Namespace: "../x", Set: "db"}:                 false,
		{Set: "db"}:                                    false,
	} {
		if canBeMember(id) != want {
			t.Errorf("%+v: got %v", id, !want)
		}
	}
}

func TestAHelloIsBounded(t *testing.T) {
	lives := func(n int) (out []spec.LifeID) {
		for i := range n {
			out = append(out, spec.LifeID{ID: ident(i + 10), Token: token(1)})
		}
		return out
	}
	for _, c := range []struct {
		name  string
		facts records.NodeFacts
		holds []spec.LifeID
		want  string // "": it is let in
	}{
		{"an honest one", records.NodeFacts{CPUMillis: 1}, lives(100), ""},
		{"with facts that are too large", records.NodeFacts{Version: strings.Repeat("o", factsBytes)}, nil, "its facts have"},
		{"with lives that nobody knows", records.NodeFacts{}, lives(maxUnknownLives + 1), "that the store does not know, of at most 4096"},
		{"with more lives than a node has", records.NodeFacts{}, lives(maxHoldings + 1), "lives, of at most 20000"},
		{"with a life that can be no member", records.NodeFacts{}, []spec.LifeID{{ID: spec.Identity{Namespace: "default", Set: "a/b"}}}, "cannot be a member"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			facts, err := json.Marshal(c.facts)
			if err != nil {
				t.Fatal(err)
			}
			h := &proto.Hello{Node: "n1", Uid: "uid1", Boot: "b1", Cluster: "c1", FactsJson: facts, Inventory: &proto.Inventory{}}
			for _, l := range c.holds {
				h.Inventory.Holdings = append(h.Inventory.Holdings, &proto.Holding{Id: wire.Identity(l.ID), Token: wire.Token(l.Token)})
			}
			_, _, err = r.server.join(t.Context(), h)
			_, stored := r.Get(store.FactsKey("n1"))
			if c.want == "" && (err != nil || !stored) {
				t.Fatalf("refused: %v", err)
			}
			if c.want != "" && (status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), c.want) || stored) {
				t.Fatalf("got %v, stored: %v; want %q", err, stored, c.want)
			}
		})
	}
}

func TestWhatASessionSaysIsBounded(t *testing.T) {
	reports := func(n int, r records.Report) *proto.FromNode {
		docs, err := wire.Documents([]records.Report{r})
		if err != nil {
			t.Fatal(err)
		}
		m := &proto.Reports{}
		for range n {
			m.ReportsJson = append(m.ReportsJson, docs...)
		}
		return &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: m}}
	}
	running := records.Report{ID: ident(0), Token: token(10), Phase: records.PhaseRunning}
	large, foreign := running, running
	large.Message = strings.Repeat("m", reportBytes)
	foreign.ID.Set = "../../etc"
	full := running
	full.Message = strings.Repeat("m", reportBytes-1000)
	inventory := &proto.Inventory{}
	for i := range maxHoldings + 1 {
		inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(ident(i)), Token: wire.Token(token(1))})
	}
	for _, c := range []struct {
		name string
		msg  *proto.FromNode
		want string // why the session ended; "": it goes on
	}{
		{"a report that is too large is left out", reports(1, large), ""},
		{"and so is one of nothing that could be a member", reports(1, foreign), ""},
		{"reports without end", reports(pendingBytes/reportBytes+10, full), "wait at once"},
		{"an inventory without end", &proto.FromNode{Kind: &proto.FromNode_Inventory{Inventory: inventory}}, "20001 lives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.begin()
			n := r.connect(n1)
			n.welcome()
			r.server.mu.Lock()
			se := r.server.sessions["n1"]
			r.server.mu.Unlock()
			se.receive(c.msg)
			if c.want != "" {
				if cause := context.Cause(se.ctx); status.Code(cause) != codes.ResourceExhausted || !strings.Contains(cause.Error(), c.want) {
					t.Fatalf("got %v", cause)
				}
				return
			}
			if got := r.server.Refusals()[LimitReports]; got != 1 {
				t.Errorf("%d refusals were counted", got)
			}
			n.report(records.Report{ID: ident(0), Token: token(10), Seq: 1, Phase: records.PhaseRunning})
			if got := n.stored(); got.GetSeq() != 1 {
				t.Errorf("the next report: %v", got)
			}
		})
	}
}

// What the store does not take is kept, but not without end.
func TestWhatIsSaidOfVolumesWaitsWithinBounds(t *testing.T) {
	se := &session{machine: machine{"n1", "uid1"}, out: newOutbox(), server: &Server{refusals: newRefusals(slog.New(slog.DiscardHandler))}}
	for part := range 3 {
		m := &proto.VolumeReports{}
		for i := range maxVolumeReports {
			report := records.VolumeReport{ID: ident(0), Claim: "data", Volume: records.VolumeID(fmt.Sprintf("v%d-%d", part, i)), State: records.VolumeTrashed}
			if i%100 == 0 {
				report.Cause, report.Message = causes.Cause(strings.Repeat("c", 10*causeBytes)), strings.Repeat("m", 10*volumeTextBytes)
			}
			docs, err := wire.Documents([]records.VolumeReport{report})
			if err != nil {
				t.Fatal(err)
			}
			m.ReportsJson = append(m.ReportsJson, docs...)
		}
		se.receiveVolumeReports(m)
	}
	if len(se.volumeReports.reports) != maxVolumeReports {
		t.Errorf("%d reports wait", len(se.volumeReports.reports))
	}
	again := records.VolumeReport{ID: ident(0), Claim: "data", Volume: "v0-7", State: records.VolumeErased}
	docs, err := wire.Documents([]records.VolumeReport{again})
	if err != nil {
		t.Fatal(err)
	}
	se.receiveVolumeReports(&proto.VolumeReports{ReportsJson: docs})
	if se.volumeReports.reports["v0-7"].State != records.VolumeErased {
		t.Error("a newer word about one of them is not taken")
	}
	for id, r := range se.volumeReports.reports {
		if bytes := len(store.Encode(r)); bytes > documentBytes {
			t.Errorf("that of %s has %d bytes", id, bytes)
		}
	}
}

func TestAReportIsStoredWithinItsBounds(t *testing.T) {
	long := strings.Repeat("é", 1<<14)
	r := records.Report{ID: ident(0), Cause: causes.Cause(long), Message: long}
	for range 3 * maxContainers {
		r.Containers = append(r.Containers, records.ContainerReport{Name: long, State: long, Cause: causes.Cause(long), Image: long})
	}
	if got := len(store.Encode(sanitized(r))); got > 80<<10 {
		t.Errorf("it has %d bytes", got)
	}
	honest := records.Report{ID: ident(0), Cause: "CrashLoop", Message: "exit 1", Containers: []records.ContainerReport{{Name: "main", State: "Running", Image: "etcd:3"}}}
	if got := sanitized(honest); string(store.Encode(got)) != string(store.Encode(honest)) {
		t.Errorf("an honest one became %+v", got)
	}
}
