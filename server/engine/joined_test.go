package engine

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// says is a report of the present life of a member of db, as dispatch judged it by what the cache shows.
func (d *manualTerm) says(ordinal int, phase records.Phase) (r cache.JudgedReport) {
	return d.saysOf(member(ordinal), phase)
}

func (d *manualTerm) saysOf(id spec.Identity, phase records.Phase) (r cache.JudgedReport) {
	d.t.Helper()
	d.cache.Look(func(v cache.View) {
		m := v.Member(id)
		if m == nil {
			d.t.Fatalf("%s has no life", id)
		}
		r.Report = &records.Report{
			ID: id, Token: m.Token, Node: m.Node, Bound: m.Bound, Seq: 2, Phase: phase, Ready: phase == records.PhaseRunning,
		}
		r.If = []store.Compare{v.Seen(store.SessionKey(m.Node)), v.Seen(store.MemberKey(id)), v.Seen(store.ReportKey(id))}
	})
	return r
}

// join offers reports, and the cache shows what came of it.
func (d *manualTerm) join(reports ...cache.JudgedReport) []store.Rev {
	d.t.Helper()
	stored := d.l.join(d.t.Context(), reports)
	d.follow()
	return stored
}

// at is the revision of a key in the store.
func (d *manualTerm) at(key string) store.Rev {
	d.t.Helper()
	_, kvs, err := d.mirror.mem.Get(d.t.Context(), key)
	if err != nil {
		d.t.Fatal(err)
	}
	return kvs[key].Mod
}

// started is a term with a set db of which the first member's life has begun.
func started(t *testing.T, replicas int) *manualTerm {
	d := newManualTerm(t)
	d.write(d.set("db", replicas))
	d.put(d.look())
	return d
}

func TestAReportIsStoredInOneTransactionWithWhatFollows(t *testing.T) {
	d := started(t, 2)
	got := d.join(d.says(0, records.PhaseRunning))
	next := d.at(store.MemberKey(member(1)))
	if len(got) != 1 || got[0] == 0 || got[0] != next || d.at(store.ReportKey(member(0))) != next {
		t.Fatalf("stored at %v, the next member starts at %d", got, next)
	}
	if mem := d.l.remembered(db); mem.notBefore != next {
		t.Errorf("the set is decided about again from revision %d on; want %d", mem.notBefore, next)
	}
	stop := func(n int32) {
		d.cache.Look(func(v cache.View) {
			set := *v.Set(db)
			set.Spec.Replicas = &n
			d.commit(store.Put(store.SetKey(db), store.Encode(set)))
		})
		d.follow()
		d.mem = d.l.remembered(db)
		d.put(d.look())
	}
	d.write(store.Put(store.ReportKey(member(1)), store.Encode(d.says(1, records.PhaseRunning).Report)))
	stop(1)
	got = d.join(d.says(1, records.PhaseStopped))
	if len(got) != 1 || got[0] == 0 {
		t.Fatalf("stored at %v", got)
	}
	for _, key := range []string{store.MemberKey(member(1)), store.ReportKey(member(1))} {
		if d.at(key) != 0 {
			t.Errorf("%s is there after the end of the life was stored with its removal", key)
		}
	}
}

// SAFETY S7: whatever the report or the decision relied on is changed in turn, unseen: neither is written.
func TestAJoinedTransactionComparesWhatBothReliedOn(t *testing.T) {
	for _, end := range []bool{false, true} {
		shared := []string{store.LeaderKey, store.EpochKey, store.HoldKey, store.CountKey, store.FormatKey, store.SetKey(db)}
		keys := append(shared, store.SessionKey("n1"), store.MemberKey(member(0)), store.ReportKey(member(0)), store.HellosKey, store.FactsKey("n1"))
		for _, key := range append(keys, "") {
			t.Run(fmt.Sprint(key, end), func(t *testing.T) {
				d := started(t, 2)
				r, starts := d.says(0, records.PhaseRunning), store.MemberKey(member(1))
				if end {
					r, starts = d.says(0, records.PhaseFailed), store.MemberKey(member(0))
				}
				before := d.at(starts)
				touch(t, d.mirror.mem, key)
				if key == starts {
					before = d.at(starts)
				}
				reported := d.at(store.ReportKey(member(0)))
				got := d.l.join(t.Context(), []cache.JudgedReport{r})
				if len(got) != 1 {
					t.Fatalf("%d answers", len(got))
				}
				wrote := d.at(starts) != before
				if !end {
					wrote = wrote || d.at(store.ReportKey(member(0))) != reported
				}
				if wrote != (key == "") || (got[0] != 0) != (key == "") {
					t.Errorf("%q changed unseen: written is %v, said to be stored at %d", key, wrote, got[0])
				}
			})
		}
	}
}

// SAFETY S18: what was seen of reports that were not stored leaves nothing in what the term
// remembers.
func TestWhatWasNotStoredIsNotRemembered(t *testing.T) {
	for _, fault := range []error{store.ErrUnknown, store.ErrUnavailable, store.ErrConflict, store.ErrLeaseGone} {
		d := started(t, 3)
		d.l.renewEventLease(t.Context())
		d.look()
		d.cache.Look(func(v cache.View) { d.l.pool.dropShown(v) })
		r := d.says(0, records.PhaseRunning)
		d.mirror.mem.Fail(func(c memstore.Call) memstore.Fault {
			if c.Method == "Commit" {
				return memstore.Fault{Err: fault}
			}
			return memstore.Fault{}
		})
		mem := d.l.remembered(db)
		mem.backoff.replaced(member(0), d.now) // which a member that is ready ends
		remembered := func() string {
			return fmt.Sprintf("%+v %v %v %v %v", *mem, d.l.due, d.l.pool.assigned, d.l.placement, d.l.sets[db] == mem)
		}
		before := remembered()
		for range 3 {
			if got := d.join(r); len(got) != 1 || got[0] != 0 {
				t.Errorf("%v: stored at %v", fault, got)
			}
		}
		if after := remembered(); after != before {
			t.Errorf("%v: it remembers\n%s\nand before\n%s", fault, after, before)
		}
		if !d.l.queued[db] {
			t.Errorf("%v: the set is not evaluated again", fault)
		}
		if gone := d.l.lease == (eventLease{}); gone != (fault == store.ErrLeaseGone) {
			t.Errorf("%v: the lease of events is %+v", fault, d.l.lease)
		}
		d.mirror.mem.Fail(nil)
		d.l.renewEventLease(t.Context())
		if got := d.join(r); len(got) != 1 || got[0] == 0 {
			t.Errorf("after %v: stored at %v", fault, got)
		}
	}
}

// What the copy of a memory shares with the memory would change it.
func TestACopyOfWhatIsRememberedSharesNothing(t *testing.T) {
	d := started(t, 3)
	mem := d.l.remembered(db)
	mem.recurrences.due = map[string]int{"x": 1}
	mem.history.moved.add(6)
	before := fmt.Sprintf("%+v", *mem)
	c := mem.clone()
	if got := fmt.Sprintf("%+v", *c); got != before {
		t.Fatalf("the copy is\n%s\nof\n%s", got, before)
	}
	c.backoff.replaced(member(0), d.now)
	c.outages = c.outages.observe(nil, d.now)
	c.recurrences.due["x"] = 2
	c.history.moved.add(7)
	c.history.open[8] = true
	if got := fmt.Sprintf("%+v", *mem); got != before {
		t.Errorf("after the copy changed it is\n%s\nand was\n%s", got, before)
	}
}

func TestReportsAreNotJoined(t *testing.T) {
	many := func(d *manualTerm, n int) (list []cache.JudgedReport) {
		for i := range n {
			list = append(list, d.says(i, records.PhaseRunning))
		}
		return list
	}
	for name, c := range map[string]struct {
		ops  []store.Op
		says func(d *manualTerm) []cache.JudgedReport
	}{
		"while the store is held": {ops: []store.Op{store.Put(store.HoldKey, store.Encode(records.Hold{Cause: "why", By: "s2"}))}},
		"while a restore counts":  {ops: []store.Op{store.Put(store.CountKey, store.Encode(records.Count{Epoch: 1}))}},
		"of which the session is another by now": {says: func(d *manualTerm) []cache.JudgedReport {
			list := many(d, 1)
			d.write(d.session())
			return list
		}},
		"of which nothing follows": {says: func(d *manualTerm) []cache.JudgedReport {
			r := d.says(0, records.PhasePreparing)
			return []cache.JudgedReport{r}
		}},
		"that make members of a Parallel set ready": {says: func(d *manualTerm) []cache.JudgedReport {
			n, ref := int32(3), db // one is missing: it would be started
			set := records.Set{Ref: ref, UID: "uid-db", Generation: 2, InitialReplicas: 2, Spec: spec.SetSpec{Replicas: &n, PodManagementPolicy: spec.Parallel}}
			d.write(store.Put(store.SetKey(ref), store.Encode(set)))
			return many(d, 1)
		}},
		"before the cache shows what was decided last": {says: func(d *manualTerm) []cache.JudgedReport {
			d.l.remembered(db).notBefore = 1 << 40
			return many(d, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := started(t, 2)
			if c.says == nil {
				c.says = func(d *manualTerm) []cache.JudgedReport { return many(d, 1) }
			}
			d.write(append(c.ops, store.Put(store.KnownKey("x"), nil))...)
			reports := c.says(d)
			before := d.at(store.MemberKey(member(1)))
			if got := d.join(reports...); len(got) != 1 || got[0] != 0 || d.at(store.MemberKey(member(1))) != before || d.at(store.ReportKey(member(0))) != 0 {
				t.Errorf("stored at %v", got)
			}
		})
	}
}

// Sets in one offer are decided about at one revision, and get different addresses.
func TestReportsOfSeveralSetsAreOneTransaction(t *testing.T) {
	d := newManualTerm(t)
	refs := []spec.SetName{"db", "aa", "bb"}
	var reports []cache.JudgedReport
	for _, name := range refs {
		d.write(d.set(name, 2))
		d.l.reconcile(t.Context(), spec.SetRef{Namespace: "default", Name: name})
		d.follow()
	}
	for _, name := range refs {
		reports = append(reports, d.saysOf(spec.Identity{Namespace: "default", Set: name}, records.PhaseRunning))
	}
	got := d.join(reports...)
	addresses := map[string]bool{}
	d.cache.Look(func(v cache.View) {
		for i, name := range refs {
			m := v.Member(spec.Identity{Namespace: "default", Set: name, Ordinal: 1})
			if got[i] == 0 || got[i] != got[0] || m == nil || addresses[m.Address.String()] {
				t.Fatalf("%s: stored at %v; next member %+v; addresses %v", name, got, m, addresses)
			}
			addresses[m.Address.String()] = true
		}
	})
	if n := len(d.l.pool.assigned); n != 3 {
		t.Errorf("%d addresses are kept as assigned; want 3", n)
	}
}

// No transaction guards that a node is not promised twice: of sets in one offer only one takes the room that is left.
func TestOfSetsInOneOfferOneTakesTheLastRoom(t *testing.T) {
	d := newManualTerm(t)
	var reports []cache.JudgedReport
	refs := []spec.SetName{"db", "aa"}
	for _, name := range refs {
		var set records.Set
		if err := json.Unmarshal(d.set(name, 2).Value, &set); err != nil {
			t.Fatal(err)
		}
		set.Spec.Template.Spec.Containers = []spec.Container{{Name: "c", Image: "i", Resources: spec.ResourceRequirements{
			Requests: map[string]scalar.Quantity{"cpu": {Milli: 300}},
		}}}
		d.write(store.Put(store.SetKey(set.Ref), store.Encode(set)))
		d.l.reconcile(t.Context(), set.Ref)
		d.follow()
	}
	for _, name := range refs {
		reports = append(reports, d.saysOf(spec.Identity{Namespace: "default", Set: name}, records.PhaseRunning))
	}
	got := d.join(reports...)
	d.cache.Look(func(v cache.View) {
		next := v.Member(spec.Identity{Namespace: "default", Set: "aa", Ordinal: 1})
		if v.Member(member(1)) == nil || next != nil || got[0] == 0 || got[1] != 0 {
			t.Errorf("stored at %v; the second set's next member is %+v", got, next)
		}
	})
	if !d.l.placement.waiting[spec.SetRef{Namespace: "default", Name: "aa"}] {
		t.Error("the second set is not evaluated again when the first one's start is seen")
	}
}
