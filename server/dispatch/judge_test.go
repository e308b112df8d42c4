package dispatch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestJudge(t *testing.T) {
	at := machine{"n1", "uid1"}
	member := testMember(0, 10, "n1", "uid1")
	base := records.Report{ID: ident(0), Token: token(10), Node: "n1", Seq: 5, Phase: records.PhaseRunning, Ready: true, ReadyFor: time.Second}
	with := func(change func(*records.Report)) records.Report { r := base; change(&r); return r }
	for _, c := range []struct {
		name     string
		report   records.Report
		member   *records.Member
		last     *records.Report
		minReady time.Duration
		want     verdict
		check    func(records.Report) bool
	}{
		{"the first report of a life is kept", base, &member, nil, 0, keep, nil},
		{"without a member it is stale", base, nil, nil, 0, stale, nil},
		{"of an older token it is stale", with(func(r *records.Report) { r.Token = token(9) }), &member, nil, 0, stale, nil},
		{"of a newer token it is stale", with(func(r *records.Report) { r.Token = token(11) }), &member, nil, 0, stale, nil},
		{"the end of an older token is stale", with(func(r *records.Report) { r.Token = token(9); r.Phase = records.PhaseStopped }), &member, nil, 0, stale, nil},
		{"of a member elsewhere it is stale", base, ptr(testMember(0, 10, "n2", "uid2")), nil, 0, stale, nil},
		{"of a member of another node it is stale, whichever machine that is", base, ptr(testMember(0, 10, "n2", "uid1")), nil, 0, stale, nil},
		{"of the machine that had the name before it is stale", base, ptr(testMember(0, 10, "n1", "uid0")), nil, 0, stale, nil},
		{"an older report says nothing new", with(func(r *records.Report) { r.Seq = 4; r.Ready = false }), &member, &base, 0, known, nil},
		{"the same report says nothing new", base, &member, &base, 0, known, nil},
		{"the same report in another session is news", with(func(r *records.Report) { r.Session = 2 }), &member, &base, 0, keep,
			func(r records.Report) bool { return r.Session == 2 && r.Ready }},
		{"an older one is none, in any session", with(func(r *records.Report) { r.Session = 2; r.Seq = 4 }), &member, &base, 0, known, nil},
		{"nor is the end that was told before", with(func(r *records.Report) { r.Session = 2; r.Phase = records.PhaseStopped }), &member,
			ptr(with(func(r *records.Report) { r.Phase = records.PhaseStopped; r.Ready = false })), 0, known, nil},
		{"a newer one with the same content says nothing new", with(func(r *records.Report) { r.Seq = 6; r.ReadyFor = time.Hour; r.At = time.Now() }), &member, &base, 0, known, nil},
		{"having been ready for long enough is news", with(func(r *records.Report) { r.Seq = 6; r.ReadyFor = 10 * time.Second }), &member, &base, 10 * time.Second, keep, nil},
		{"becoming unready is news", with(func(r *records.Report) { r.Seq = 6; r.Ready = false }), &member, &base, 0, keep, nil},
		{"having been ready meanwhile is news", with(func(r *records.Report) { r.Seq = 6; r.Ready, r.ReadyOnce = false, true }), &member,
			ptr(with(func(r *records.Report) { r.Ready = false })), 0, keep, func(r records.Report) bool { return r.ReadyOnce }},
		{"that it was ready in this life is never forgotten", with(func(r *records.Report) { r.Seq = 6; r.Ready = false }), &member, &base, 0, keep,
			func(r records.Report) bool { return r.ReadyOnce }},
		{"nor when it was ready longer ago", with(func(r *records.Report) { r.Seq = 6; r.Ready = false; r.Cause = "X" }), &member,
			ptr(with(func(r *records.Report) { r.Ready, r.ReadyOnce = false, true })), 0, keep, func(r records.Report) bool { return r.ReadyOnce }},
		{"a cause is news", with(func(r *records.Report) { r.Seq = 6; r.Cause = "CrashLoop" }), &member, &base, 0, keep, nil},
		{"what it says of itself is news", with(func(r *records.Report) { r.Seq = 6; r.Claim.Leads, r.Claim.Term = true, 2 }), &member, &base, 0, keep,
			func(r records.Report) bool { return r.Claim.Leads && r.Claim.Term == 2 }},
		{"that it says so no more is news", with(func(r *records.Report) { r.Seq = 6 }), &member, ptr(with(func(r *records.Report) { r.Claim.Leads = true })), 0, keep,
			func(r records.Report) bool { return !r.Claim.Leads }},
		{"what came of a hook is news", with(func(r *records.Report) { r.Seq = 6; r.Hook.Done = true }), &member, &base, 0, keep,
			func(r records.Report) bool { return r.Hook.Done }},
		{"a restart is news", with(func(r *records.Report) {
			r.Seq = 6
			r.Containers = []records.ContainerReport{{Name: "main", Restarts: 1}}
		}), &member, &base, 0, keep, nil},
		{"the phase never goes back", with(func(r *records.Report) { r.Seq = 6; r.Phase = records.PhaseStarting; r.Ready = false }), &member, &base, 0, keep,
			func(r records.Report) bool { return r.Phase == records.PhaseRunning && !r.Ready }},
		{"what is over stays over", with(func(r *records.Report) { r.Seq = 6 }), &member, ptr(with(func(r *records.Report) { r.Phase = records.PhaseStopped; r.Ready = false })), 0, known, nil},
		{"the end is kept even with a lower sequence", with(func(r *records.Report) { r.Seq = 1; r.Phase = records.PhaseStopped }), &member, &base, 0, keep,
			func(r records.Report) bool { return !r.Ready }},
		{"a report of the life before does not count", base, &member, ptr(with(func(r *records.Report) { r.Token = token(9); r.Seq = 99; r.Phase = records.PhaseStopped })), 0, keep, nil},
		{"an unknown phase is not stored", with(func(r *records.Report) { r.Phase = "Dreaming" }), &member, nil, 0, known, nil},
		{"a long message is cut", with(func(r *records.Report) { r.Message = strings.Repeat("ä", messageBytes) }), &member, nil, 0, keep,
			func(r records.Report) bool {
				return len(r.Message) <= messageBytes && strings.HasPrefix(r.Message, "ää")
			}},
		{"the node is the session's, whatever it says", with(func(r *records.Report) { r.Node = "n9" }), &member, nil, 0, keep,
			func(r records.Report) bool { return r.Node == "n1" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, v := judge(c.report, at, c.member, c.last, c.minReady)
			if v != c.want || (c.check != nil && !c.check(got)) {
				t.Fatalf("got verdict %d, %+v; want %d", v, got, c.want)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func (r *rig) report(ordinal int) (records.Report, bool) {
	kv, ok := r.Get(store.ReportKey(ident(ordinal)))
	if !ok {
		return records.Report{}, false
	}
	got, err := store.Decode[records.Report](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return got, true
}

func running(tok, seq int64) records.Report {
	return records.Report{ID: ident(0), Token: token(tok), Seq: seq, Phase: records.PhaseRunning, Ready: true}
}

func TestAReportIsStoredAndAnswered(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	session := n.welcome().GetSession()
	n.report(running(10, 1))
	got := n.stored()
	if got.GetStale() || got.GetSeq() != 1 || wire.ToToken(got.GetToken()) != token(10) {
		t.Fatalf("got %v", got)
	}
	if rep, ok := r.report(0); !ok || !rep.Ready || rep.Node != "n1" || int64(rep.Session) != session {
		t.Fatalf("got %+v", rep)
	}
	before, _ := r.Get(store.ReportKey(ident(0)))
	n.report(running(10, 2))
	if got := n.stored(); got.GetStale() || got.GetSeq() != 2 {
		t.Fatalf("got %v", got)
	}
	if after, _ := r.Get(store.ReportKey(ident(0))); after.Mod != before.Mod {
		t.Fatal("a report without news was written")
	}
}

// Only the word of the node's present session is believed (SAFETY S15).
func TestAReportIsStoredAnewInEachSession(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.report(running(10, 1))
	n.stored()
	again := r.connect(n1)
	session := again.welcome().GetSession()
	if rep, ok := r.report(0); !ok || int64(rep.Session) == session {
		t.Fatalf("got %+v, want it of the session before", rep)
	}
	again.report(running(10, 1))
	again.stored()
	if rep, ok := r.report(0); !ok || !rep.Ready || int64(rep.Session) != session {
		t.Fatalf("got %+v, want it of session %d", rep, session)
	}
}

func TestALateReportOfAnOldTokenIsNeverStored(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	r.live(0, 30, "n1", "uid1")
	n.report(records.Report{ID: ident(0), Token: token(10), Seq: 9, Phase: records.PhaseStopped})
	if got := n.stored(); !got.GetStale() {
		t.Fatalf("got %v, want stale", got)
	}
	if rep, ok := r.report(0); ok {
		t.Fatalf("got %+v, want no report", rep)
	}
}

// The member moves on between the look and the commit: the guard must see it.
func TestAReportThatRacesWithANewLifeIsNeverStored(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	raced := false
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced && strings.HasPrefix(c.Txn.Then[0].Key, store.KindReport) {
			raced = true
			_, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{
				store.Put(store.MemberKey(ident(0)), store.Encode(testMember(0, 30, "n1", "uid1")))}})
			if err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	n.report(records.Report{ID: ident(0), Token: token(10), Seq: 9, Phase: records.PhaseStopped})
	if got := n.stored(); !got.GetStale() {
		t.Fatalf("got %v, want stale", got)
	}
	if rep, ok := r.report(0); ok || !raced {
		t.Fatalf("got %+v (raced %v), want no report", rep, raced)
	}
}

// The member's record moves on but the life is the same: the report is stored.
func TestAReportThatRacesWithAStopOrderIsStoredAllTheSame(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	raced := false
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced && strings.HasPrefix(c.Txn.Then[0].Key, store.KindReport) {
			raced = true
			m := testMember(0, 10, "n1", "uid1")
			m.Goal = records.GoalStop
			if _, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.MemberKey(ident(0)), store.Encode(m))}}); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	n.report(running(10, 1))
	if got := n.stored(); got.GetStale() || !raced {
		t.Fatalf("got %v (raced %v)", got, raced)
	}
	if rep, ok := r.report(0); !ok || rep.Seq != 1 {
		t.Fatalf("got %+v", rep)
	}
}

func TestAReportOfAReplacedSessionIsRefusedAndTheSessionEnds(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	raced := false
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced && strings.HasPrefix(c.Txn.Then[0].Key, store.KindReport) {
			raced = true // another server takes the session over: a put, the create-revision stays
			other := records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 999, Server: "s2"}
			if _, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.SessionKey("n1"), store.Encode(other))}}); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	n.report(running(10, 1))
	if err := n.ended(); status.Code(err) != codes.Aborted || !raced {
		t.Fatalf("got %v (raced %v), want ABORTED", err, raced)
	}
	if rep, ok := r.report(0); ok {
		t.Fatalf("got %+v, want no report", rep)
	}
}

func TestAReportWithUnknownOutcomeIsSettledByReading(t *testing.T) {
	for name, applied := range map[string]bool{"it was stored": true, "it was not stored": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.begin()
			n := r.connect(n1)
			n.wanted()
			failed := false
			r.Store.Fail(func(c memstore.Call) memstore.Fault {
				if c.Method == "Commit" && !failed {
					failed = true
					return memstore.Fault{Err: store.ErrUnknown, Applied: applied}
				}
				return memstore.Fault{}
			})
			n.report(running(10, 1))
			if got := n.stored(); got.GetStale() || !failed {
				t.Fatalf("got %v (failed %v)", got, failed)
			}
			if rep, ok := r.report(0); !ok || rep.Seq != 1 {
				t.Fatalf("got %+v", rep)
			}
		})
	}
}

// A write that timed out may be done after the next one, as by a member of the store that was frozen: what it says is old by then.
func TestALateWriteOfAReportDoesNotReplaceANewerOne(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	var late *store.Txn
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && late == nil {
			late = &c.Txn
			return memstore.Fault{Err: store.ErrUnknown}
		}
		return memstore.Fault{}
	})
	n.report(running(10, 1))
	n.stored()
	r.Store.Fail(nil)
	over := running(10, 2)
	over.Phase, over.Ready = records.PhaseStopped, false
	n.report(over)
	n.stored()
	if _, err := r.Store.Commit(t.Context(), *late); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the late write: %v", err)
	}
	if rep, ok := r.report(0); !ok || rep.Phase != records.PhaseStopped {
		t.Errorf("got %+v", rep)
	}
}

func TestReportsWaitWhileTheStoreIsAwayAndAreBatched(t *testing.T) {
	r := newRig(t)
	r.begin()
	for i := 1; i < 100; i++ {
		r.live(i, int64(100+i), "n1", "uid1")
	}
	n := r.connect(n1)
	n.wanted()
	r.failCommits(store.ErrUnavailable, false)
	n.report(running(10, 1))
	r.until("the server says so", func() bool { return strings.Contains(r.logs.String(), "reports not stored") })
	for i := 1; i < 100; i++ {
		n.report(records.Report{ID: ident(i), Token: token(int64(100 + i)), Seq: 1, Phase: records.PhaseRunning, Ready: true})
	}
	n.ping(1) // all that was sent before it waits
	n.pong()
	before, _, err := r.Store.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Store.Fail(nil)
	r.until("all are stored", func() bool {
		for i := range 100 {
			if _, ok := r.report(i); !ok {
				return false
			}
		}
		return true
	})
	after, _, _ := r.Store.Get(t.Context())
	if after-before > 4 {
		t.Fatalf("100 reports took %d revisions", after-before)
	}
}
