package engine

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestTheStatusOfALargeSetHasNoRows(t *testing.T) {
	for _, c := range []struct {
		name              string
		replicas, records int
		want              bool
	}{
		{"as many members as have rows", tableSize, 0, true},
		{"more", tableSize + 1, 0, false},
		{"as many are remembered", 1, tableSize, true},
		{"more are remembered", 1, tableSize + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newManualTerm(t)
			ops := []store.Op{d.set("db", c.replicas)}
			for i := range c.records {
				ops = append(ops, store.Put(store.IdentityKey(member(i)), store.Encode(records.IdentityRecord{ID: member(i)})))
			}
			d.write(ops...)
			var asked bool
			d.next = func(w plan.World) plan.Plan { asked = w.Table; return plan.Plan{} }
			d.look()
			if asked != c.want {
				t.Errorf("rows are asked for: %v, want %v", asked, c.want)
			}
		})
	}
}

func TestOnlyWhatWasDecidedAndWrittenIsMeasured(t *testing.T) {
	d := newManualTerm(t)
	waits := plan.Plan{Blocked: []plan.Blocked{{ID: member(0), Reason: causes.BlockedNoRoom}}}
	d.next = func(plan.World) plan.Plan { return waits }
	measured := func(what string, decided, committed uint64, blocked int) {
		t.Helper()
		s := d.l.Stats()
		if s.Plan.Count != decided || s.Commit.Count != committed || s.Blocked[causes.BlockedNoRoom] != blocked {
			t.Errorf("%s: %d decisions, %d commits, %d waiting; want %d, %d and %d", what, s.Plan.Count, s.Commit.Count, s.Blocked[causes.BlockedNoRoom], decided, committed, blocked)
		}
	}
	d.l.reconcile(t.Context(), db)
	measured("there is no such set", 0, 0, 0)
	d.mem = d.l.remembered(db)
	d.write(d.set("db", 1), store.Put(store.StatusKey(db), store.Encode(records.SetStatus{})))
	d.l.reconcile(t.Context(), db)
	measured("nothing is to be done", 1, 0, 1)
	d.mem.notBefore = 1 << 40
	d.l.reconcile(t.Context(), db)
	measured("the cache does not show the last commit", 1, 0, 1)
	if !d.l.placement.unplaced[db] {
		t.Error("it is forgotten that a member waits for room")
	}
	d.mem.notBefore, waits.Actions = 0, []plan.Action{asked()}
	d.l.reconcile(t.Context(), db)
	measured("something is done", 2, 1, 1)
}

func TestADecisionThatMakesNoSenseIsLoggedAndTriedAgain(t *testing.T) {
	for name, op := range map[string]func(*manualTerm) store.Op{
		"of a set": func(d *manualTerm) store.Op { return d.set("db", 1) },
		"of a set that is gone": func(*manualTerm) store.Op {
			return store.Put(store.VolumeKey(member(0), "data"), store.Encode(records.Volume{ID: member(0), Claim: "data", UID: "v", Fate: records.FateDelete}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newManualTerm(t)
			d.write(op(d))
			d.next = func(plan.World) plan.Plan {
				return plan.Plan{Actions: []plan.Action{asked(), plan.Stop{ID: member(0), Token: spec.Token{Epoch: 1, Number: 1}}}}
			}
			d.l.reconcile(t.Context(), db)
			at, ok := d.l.nextDue()
			if !strings.Contains(d.log.String(), "its token is not 1.1") || !ok || at.Sub(d.now) != firstPause || d.l.sets[db] != d.mem {
				t.Errorf("it is tried again after %s (%v); told: %s", at.Sub(d.now), ok, &d.log)
			}
		})
	}
}

// TestTheStartOfALifeIsRecordedWithWhatComesNext: alone only after a while, and with anything
// else at once.
func TestTheStartOfALifeIsRecordedWithWhatComesNext(t *testing.T) {
	d := newManualTerm(t)
	var does []plan.Action
	d.next = func(plan.World) plan.Plan { return plan.Plan{Actions: does} }
	life := func(n int, number int64) store.Op {
		return store.Put(store.MemberKey(member(n)), store.Encode(records.Member{ID: member(n), Token: spec.Token{Epoch: 1, Number: number}, Goal: records.GoalRun, Node: "n1", NodeUID: "x"}))
	}
	report := func(n int, number int64, phase records.Phase) store.Op {
		return store.Put(store.ReportKey(member(n)), store.Encode(records.Report{
			ID: member(n), Token: spec.Token{Epoch: 1, Number: number}, Node: "n1", Phase: phase, Ready: phase == records.PhaseRunning}))
	}
	d.write(d.set("db", 2), store.Put(store.StatusKey(db), store.Encode(records.SetStatus{})))
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		at   time.Duration
		ops  []store.Op
		does []plan.Action
		want string // the history after it
		wake time.Duration
	}{
		{"a life begins", 0, []store.Op{life(0, 5)}, nil, "[]", 1000 * ms},
		{"nothing else", 400 * ms, nil, nil, "[]", 600 * ms},
		{"it is ready", 500 * ms, []store.Op{report(0, 5, records.PhaseRunning)}, nil, "[Joined 0 Ready 0]", 0},
		{"it ends", 600 * ms, []store.Op{report(0, 5, records.PhaseFailed)}, nil, "[Joined 0 Ready 0 Left 0 Failed]", 0},
		{"the next begins, when another may wait as long", 700 * ms, []store.Op{life(0, 9)}, nil, "[Joined 0 Ready 0 Left 0 Failed]", 1000 * ms},
		{"it has waited", 1700 * ms, nil, nil, "[Joined 0 Ready 0 Left 0 Failed Returned 0]", 0},
		{"nothing happens", 1750 * ms, nil, nil, "[Joined 0 Ready 0 Left 0 Failed Returned 0]", 0},
		{"another begins, and one is ready", 1800 * ms, []store.Op{life(1, 7), report(0, 9, records.PhaseRunning)}, nil,
			"[Joined 0 Ready 0 Left 0 Failed Returned 0 Ready 0 Joined 1]", 0},
		{"that one ends", 1900 * ms, []store.Op{report(1, 7, records.PhaseFailed)}, nil,
			"[Joined 0 Ready 0 Left 0 Failed Returned 0 Ready 0 Joined 1 Left 1 Failed]", 0},
	} {
		d.after(c.at)
		d.write(c.ops...)
		d.mem.statusDue = d.now // what is told is not held back for the status
		does = c.does
		got := d.look()
		d.put(got)
		d.cache.Look(func(v cache.View) {
			if now := fmt.Sprint(told(v)); now != c.want || got.wake != c.wake {
				t.Errorf("%s: told %s, again in %s; want %s and %s", c.name, now, got.wake, c.want, c.wake)
			}
		})
	}
	d.write(life(1, 8))
	does = []plan.Action{asked()}
	got := d.look()
	if len(got.decisions) != 2 || got.decisions[0].action != nil || got.decisions[1].action == nil || got.wake != 0 {
		t.Errorf("with an action: %+v; want that it is told before it, at once", got.decisions)
	}
}

// TestAStatusIsWrittenWithADecisionOrAfterAWhile: and in each while once.
func TestAStatusIsWrittenWithADecisionOrAfterAWhile(t *testing.T) {
	d := newManualTerm(t)
	d.write(d.set("db", 1))
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		at     time.Duration
		does   []plan.Action
		status int // how many replicas it tells of
		want   int // the units that are written
		stored int
		wake   time.Duration
	}{
		{"it differs", 0, nil, 1, 0, 0, 100 * ms},
		{"nobody does anything", 50 * ms, nil, 1, 0, 0, 50 * ms},
		{"it has waited", 100 * ms, nil, 1, 1, 1, 0},
		{"nothing happens, but it is not looked at so soon", 150 * ms, nil, 1, 0, 1, 50 * ms},
		{"a decision, and a status so soon after the last", 160 * ms, []plan.Action{asked()}, 2, 1, 1, 140 * ms},
		{"a decision after a while", 200 * ms, []plan.Action{asked()}, 2, 2, 2, 0},
		{"a decision that changes no status", 210 * ms, []plan.Action{asked()}, 2, 1, 2, 190 * ms},
		{"nothing happens for longer", 350 * ms, nil, 2, 0, 2, 0},
		{"then a decision does", 360 * ms, []plan.Action{asked()}, 3, 2, 3, 0},
		{"a mark waits", 365 * ms, []plan.Action{marked()}, 4, 0, 3, 100 * ms},
		{"a mark has waited", 465 * ms, []plan.Action{marked()}, 4, 2, 4, 0},
	} {
		d.after(c.at)
		d.next = func(plan.World) plan.Plan {
			return plan.Plan{Actions: c.does, Status: records.SetStatus{Replicas: c.status}}
		}
		got := d.look()
		d.put(got)
		d.cache.Look(func(v cache.View) {
			stored := 0
			if st := v.Status(db); st != nil {
				stored = st.Replicas
			}
			if len(got.decisions) != c.want || stored != c.stored || got.wake != c.wake {
				t.Errorf("%s: %d units, the status tells of %d, again in %s; want %d, %d and %s", c.name, len(got.decisions), stored, got.wake, c.want, c.stored, c.wake)
			}
		})
	}
}

// TestACommitThatFailsIsTriedAgain: and told, once, unless it is only news.
func TestACommitThatFailsIsTriedAgain(t *testing.T) {
	put := decision{Txn: store.Txn{Then: []store.Op{store.Put("x", nil)}}}
	late := decision{Txn: store.Txn{If: []store.Compare{store.Seen("y", 99)}, Then: []store.Op{store.Put("y", nil)}}}
	leased := decision{Txn: store.Txn{Then: []store.Op{store.PutLeased("z", nil, 99)}}}
	for _, c := range []struct {
		name   string
		units  []decision
		fault  error
		over   bool // the term
		again  bool
		told   int
		leased bool // the lease of the events is kept
	}{
		{"all is written", []decision{put}, nil, false, false, 0, true},
		{"somebody wrote before", []decision{late}, nil, false, true, 0, true},
		{"somebody wrote before one of them", []decision{put, late, put}, nil, false, true, 0, true},
		{"the events' lease is gone", []decision{leased}, nil, false, true, 0, false},
		{"the lease is gone, and somebody wrote before", []decision{leased, late}, nil, false, true, 0, false},
		{"somebody wrote before, and the lease is gone", []decision{late, leased}, nil, false, true, 0, false},
		{"the store is away", []decision{put}, store.ErrUnavailable, false, true, 1, true},
		{"the store is away, and the term is over", []decision{put}, nil, true, true, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newManualTerm(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.over {
				cancel()
			}
			d.mirror.mem.Fail(func(memstore.Call) memstore.Fault { return memstore.Fault{Err: c.fault} })
			d.l.lease = eventLease{7, d.now}
			pause := firstPause
			for range 3 {
				clear(d.l.due)
				d.l.commit(ctx, &evaluation{ref: db, mem: d.mem, decisions: slices.Clone(c.units)})
				at, again := d.l.nextDue()
				if again != c.again || again && at.Sub(d.now) != pause {
					t.Errorf("again: %v, after %s; want %v after %s", again, at.Sub(d.now), c.again, pause)
				}
				pause *= 2
			}
			if told := strings.Count(d.log.String(), "level=WARN"); told != c.told {
				t.Errorf("told %d times, want %d: %s", told, c.told, &d.log)
			}
			if kept := d.l.lease.id == 7; kept != c.leased {
				t.Errorf("the lease is kept: %v, want %v", kept, c.leased)
			}
			if !c.again {
				return
			}
			d.mirror.mem.Fail(nil)
			d.l.commit(t.Context(), &evaluation{ref: db, mem: d.mem, decisions: []decision{put}})
			if d.mem.failures != 0 {
				t.Errorf("%d failures are counted after a commit that was done", d.mem.failures)
			}
		})
	}
}

// TestWhatWasStartedIsKnownBeforeTheCacheShowsIt: no other set gets its address, nor is one
// placed that may mind.
func TestWhatWasStartedIsKnownBeforeTheCacheShowsIt(t *testing.T) {
	d := newManualTerm(t)
	other := spec.SetRef{Namespace: "default", Name: "other"}
	d.write(d.set("db", 1), d.set("other", 1))
	free := func() (first netip.Addr) {
		d.cache.Look(func(v cache.View) { first = d.l.pool.candidates(v, 1, d.now)[0] })
		return first
	}
	minds := plan.World{Set: &records.Set{Ref: other}, Nodes: []plan.Node{{Residents: []plan.Resident{}}}}
	held := func() (waits bool) {
		d.cache.Look(func(v cache.View) { waits = d.l.placement.mustWait(other, v.Rev(), &minds) })
		return waits
	}
	before := free()
	d.l.reconcile(t.Context(), db)
	if got := free(); got == before || !held() {
		t.Errorf("the address %s is free still, and the other set waits: %v", got, held())
	}
	d.follow()
	if held() {
		t.Error("the other set waits though the cache shows all lives")
	}
	var life spec.Token
	d.cache.Look(func(v cache.View) { m := v.Member(member(0)); life = m.Token })
	d.next = func(plan.World) plan.Plan {
		return plan.Plan{Actions: []plan.Action{plan.Stop{ID: member(0), Token: life}}}
	}
	d.l.reconcile(t.Context(), db)
	if held() {
		t.Error("the other set waits for what ended")
	}
	d.follow()
	d.write(store.Put(store.ReportKey(member(0)), store.Encode(records.Report{ID: member(0), Token: life, Phase: records.PhaseStopped})))
	d.next = nil
	d.l.reconcile(t.Context(), db)
	if _, noted := d.l.pool.assigned[before]; noted || !held() {
		t.Errorf("the next life keeps its address, and that is noted: %v; the other set waits: %v", noted, held())
	}
}
