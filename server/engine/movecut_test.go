package engine

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// moveStory is a move from its begin to its end, with two machines that do at once what they are told.
type moveStory struct {
	name  string
	begin stage
	// abortIn is the phase in which a user gives the move up; "": nobody does.
	abortIn moves.MovePhase
	// sealed and arrived are so from the begin: the store was restored from before the move.
	sealed, arrived bool
	// cuts are the phases after whose writes the leader has to have been stopped; "" is the end of the move.
	cuts []moves.MovePhase
	want moveEnd
}

// moveEnd is what is left of it.
type moveEnd struct {
	on      string // the node of the volume, and of a life that is ready
	old     bool   // the volume is the one of the begin
	left    bool   // an old copy is given up on n1
	sealed  bool   // the volume on n1 is
	pending bool   // the record of the move, or a request, is still there
}

func moveStories() []moveStory {
	asks := func(verb moves.MoveVerb, st stage) stage { st.moveAsk = &moves.MoveRequest{Verb: verb}; return st }
	runs, ended := stage{name: "runs", report: records.PhaseRunning}, stage{name: "ended", report: records.PhaseStopped, source: moves.MoveSealed}
	whole := []moves.MovePhase{moves.MoveCopying, moves.MoveStopping, moves.MoveSealing, moves.MoveFlipped, ""}
	there, back := moveEnd{on: "n2", left: true, sealed: true}, moveEnd{on: "n1", old: true}
	return []moveStory{
		{name: "a whole move", begin: asks(moves.MoveBegin, runs), cuts: whole, want: there},
		{name: "aborted while it copies", begin: asks(moves.MoveBegin, runs), abortIn: moves.MoveCopying, cuts: []moves.MovePhase{moves.MoveAborting, ""}, want: back},
		{name: "aborted while it stops", begin: asks(moves.MoveBegin, runs), abortIn: moves.MoveStopping, cuts: []moves.MovePhase{moves.MoveStopping, moves.MoveAborting, ""}, want: back},
		{name: "aborted when it is sealed", begin: asks(moves.MoveBegin, runs), abortIn: moves.MoveSealing, cuts: []moves.MovePhase{moves.MoveSealing, moves.MoveAborting, ""}, want: back},
		{name: "an unknown seal, and the target has nothing", begin: asks(moves.MoveAbort, ended), sealed: true, cuts: []moves.MovePhase{moves.MoveAborting, ""}, want: back},
		{name: "an unknown seal, and the volume arrived", begin: asks(moves.MoveAbort, ended), sealed: true, arrived: true, cuts: []moves.MovePhase{moves.MoveAborting, moves.MoveFlipped, ""}, want: there},
	}
}

// movePlay is a story that is played: the store, and the truth on both machines.
type movePlay struct {
	t *testing.T
	moveStory
	mem     *memstore.Store
	now     time.Time
	aborted bool
	views   []picture
	old     []oldWork
}

// picture is the store at one revision.
type picture struct {
	rev store.Rev
	kvs []store.KV
}

// oldWork is what a leader decided by a view that is not the newest any more.
type oldWork struct {
	l    *leader
	turn evaluation
}

func play(t *testing.T, s moveStory) *movePlay {
	p := &movePlay{t: t, moveStory: s, mem: memstore.New(), now: time.Unix(1000, 0)}
	t.Cleanup(func() { _ = p.mem.Close() })
	p.commit(base(s.begin)...)
	return p
}

func (p *movePlay) commit(ops ...store.Op) {
	p.t.Helper()
	if _, err := p.mem.Commit(p.t.Context(), store.Txn{Then: ops}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *movePlay) look() (x picture) {
	p.t.Helper()
	var err error
	if x.rev, x.kvs, err = p.mem.Snapshot(p.t.Context(), ""); err != nil {
		p.t.Fatal(err)
	}
	return x
}

func (p *movePlay) cache(x picture) *cache.Cache {
	p.t.Helper()
	c := cache.New(p.mem, slog.New(slog.DiscardHandler))
	if err := c.Load(x.rev, x.kvs); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// decide is what the leader of a term decides by a picture, knowing nothing else.
func (p *movePlay) decide(x picture, term store.Leadership) oldWork {
	p.t.Helper()
	c := p.cache(x)
	e, err := New(Config{Store: p.mem, Cache: c, ID: "x", CIDR: netip.MustParsePrefix("10.88.0.0/24"), Now: func() time.Time { return p.now }})
	if err != nil {
		p.t.Fatal(err)
	}
	w := oldWork{l: e.leader(term)}
	c.Look(func(v cache.View) { w.turn = w.l.evaluate(v, db, w.l.remembered(db), p.now) })
	if w.turn.err != nil {
		p.t.Fatal(w.turn.err)
	}
	return w
}

// put writes what was decided, and reports whether anything was.
func (p *movePlay) put(w oldWork) bool {
	before := p.look().rev
	w.l.commit(p.t.Context(), &w.turn)
	return p.look().rev != before
}

// leads has a new leader, whose term ends all others.
func (p *movePlay) leads(value string) store.Leadership {
	p.commit(store.Del(store.LeaderKey))
	p.commit(store.Put(store.LeaderKey, []byte(value)))
	_, kvs, err := p.mem.Get(p.t.Context(), store.LeaderKey)
	if err != nil {
		p.t.Fatal(err)
	}
	return store.Leadership{Value: value, Created: kvs[store.LeaderKey].Create}
}

// turn is one of a leader: it writes what it decides by the newest view. What it decided is kept.
func (p *movePlay) turn(term store.Leadership) bool {
	x := p.look()
	w := p.decide(x, term)
	p.views, p.old = append(p.views, x), append(p.old, w)
	p.now = p.now.Add(time.Second)
	return p.put(w)
}

// answers has user and machines do what comes next for them, and reports whether there was anything.
func (p *movePlay) answers() bool {
	var ops []store.Op
	p.cache(p.look()).Look(func(v cache.View) {
		m, id := cache.MoveOf(v, member(0)), member(0)
		if m != nil && m.Phase == p.abortIn && !p.aborted && (m.Phase != moves.MoveSealing || m.Sums != nil) {
			p.aborted = true
			ops = append(ops, store.Put(store.MoveRequestKey(id), store.Encode(moves.MoveRequest{ID: id, Verb: moves.MoveAbort, Move: m.Move})))
		}
		for _, n := range v.Nodes() {
			if now := p.says(v, n, m); !slices.EqualFunc(now, n.Facts.MoveReports, moves.MoveReport.Equal) {
				facts := *n.Facts
				facts.MoveReports = now
				ops = append(ops, store.Put(store.FactsKey(n.Node.Name), store.Encode(facts)))
			}
		}
		life, report := v.Member(id), v.Report(id)
		if life == nil || proof.Ended(life, report) {
			return
		}
		r := records.Report{ID: id, Token: life.Token, Node: life.Node, Phase: records.PhaseStopped}
		if life.Goal == records.GoalRun {
			if p.sealed && life.Node == "n1" || life.Node == "n2" && !p.arrived || report != nil && report.Token == life.Token && report.Ready {
				return
			}
			r.Phase, r.Ready, r.ReadyFor = records.PhaseRunning, true, time.Hour
			r.Session = proof.FindNode(v.Nodes(), life.Node).Session.ID
		}
		ops = append(ops, store.Put(store.ReportKey(id), store.Encode(r)))
	})
	if len(ops) > 0 {
		p.commit(ops...)
	}
	return len(ops) > 0
}

// says is what a machine has to say of its part in a move, which it does first.
func (p *movePlay) says(v cache.View, n plan.Node, m *moves.Move) []moves.MoveReport {
	sums := []moves.MoveSum{{Claim: "data", Sum: "s"}}
	role := moves.MoveSource
	if n.Node.Name == "n2" {
		role = moves.MoveTarget
	}
	if m == nil {
		if p.sealed && p.begin.source != "" && role == moves.MoveSource {
			return n.Facts.MoveReports // the seal that nobody knows
		}
		return nil
	}
	o := plan.MoveOrder(m, role, v.Nodes(), v.Epoch(), func(c spec.ClaimName) *records.Volume { return v.Volume(m.ID, c) })
	r := moves.MoveReport{ID: m.ID, Move: m.Move, Role: role}
	switch {
	case role == moves.MoveSource && m.Phase == moves.MoveSealing:
		p.sealed, r.State, r.Sums = true, moves.MoveSealed, sums
	case role == moves.MoveSource && o.Unseal:
		p.sealed, r.State = false, moves.MoveUnsealed
	case role == moves.MoveSource && p.sealed:
		r.State = moves.MoveSealed
	case role == moves.MoveSource:
		r.State = moves.MoveOffered
	case m.Phase == moves.MoveFlipped || p.arrived:
		p.arrived, r.State = true, moves.MoveArrived
	case o.Phase == moves.MoveAborting:
		r.State = moves.MoveDiscarded
	case o.Sums != nil:
		r.State, r.Sums = moves.MoveCopied, sums
	default:
		r.State = moves.MoveWarm
	}
	return []moves.MoveReport{r}
}

// phase is that of the move; "": there is none.
func (p *movePlay) phase() (phase moves.MovePhase) {
	p.cache(p.look()).Look(func(v cache.View) {
		if m := cache.MoveOf(v, member(0)); m != nil {
			phase = m.Phase
		}
	})
	return phase
}

// settle has a leader and the machines go on until nothing happens any more.
func (p *movePlay) settle(term store.Leadership) moveEnd {
	p.t.Helper()
	for range 100 {
		wrote := p.turn(term)
		if answered := p.answers(); !wrote && !answered {
			return p.end()
		}
	}
	p.t.Fatalf("it does not come to an end: %s", p.phase())
	return moveEnd{}
}

func (p *movePlay) end() (e moveEnd) {
	p.cache(p.look()).Look(func(v cache.View) {
		id := member(0)
		vol, life, report := v.Volume(id, "data"), v.Member(id), v.Report(id)
		e.old, e.sealed = vol.UID == "v", p.sealed
		if life != nil && life.Goal == records.GoalRun && report != nil && report.Ready && life.Node == vol.Node && life.Volumes[0].ID == vol.UID {
			e.on = string(vol.Node)
		}
		for _, kv := range p.look().kvs {
			e.left = e.left || kv.Key == store.VolumeReportKey(id, "data", "v")
			e.pending = e.pending || kv.Key == store.MoveKey(id) || kv.Key == store.MoveRequestKey(id)
		}
	})
	return e
}

// SAFETY S7, S12: wherever a leader is stopped within a move, the next one brings it to the same end, also if it decides by any view that
// there was before, and the one before it goes on writing what it decided.
func TestTheNextLeaderBringsAMoveToTheSameEnd(t *testing.T) {
	for _, story := range moveStories() {
		t.Run(story.name, func(t *testing.T) {
			p := play(t, story)
			if got := p.settle(p.leads("a")); got != story.want {
				t.Fatalf("with one leader: got %+v, want %+v", got, story.want)
			}
			cut, over := map[moves.MovePhase]int{}, false
			for writes := 1; !over; writes++ {
				t.Run(fmt.Sprintf("stopped after %d writes", writes), func(t *testing.T) {
					over = stopAfter(t, story, writes, cut)
				})
			}
			for _, phase := range story.cuts {
				if cut[phase] == 0 {
					t.Errorf("no leader was stopped in phase %q: %v", phase, cut)
				}
			}
		})
	}
}

// stopAfter plays a story with a leader that is stopped after so many writes, and another one then; over: it did not write so often.
func stopAfter(t *testing.T, story moveStory, writes int, cut map[moves.MovePhase]int) (over bool) {
	p := play(t, story)
	first := p.leads("a")
	for done, idle := 0, false; done < writes; {
		if idle {
			return true
		}
		wrote := p.turn(first)
		if wrote {
			done++
		}
		if done < writes {
			idle = !p.answers() && !wrote
		}
	}
	cut[p.phase()]++
	second := p.leads("b")
	for _, x := range append(slices.Clone(p.views), p.look()) { // any view that it may have
		w := p.decide(x, second)
		p.answers()
		p.put(w)
	}
	for _, w := range p.old {
		if p.put(w) {
			t.Errorf("what the first leader decided is written after its term: %v", w.turn.decisions)
		}
	}
	if got := p.settle(second); got != story.want {
		t.Errorf("got %+v, want %+v", got, story.want)
	}
	return false
}
