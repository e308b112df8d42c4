package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var n2 = hello{node: "n2", uid: "uid2", boot: "b2", cluster: "c1"}

// A node that lies about the trash of another gets nothing: neither is what the other said
// replaced or forgotten, nor is the volume brought back from the liar.
func TestANodeSpeaksOfItsOwnVolumesOnly(t *testing.T) {
	kept := records.Volume{ID: ident(1), Claim: "data", UID: "v", Number: 3, Class: "ssd", Node: "n1", SizeBytes: 7, Fate: records.FateReclaiming, Turn: 2}
	said := records.VolumeReport{ID: ident(1), Claim: "data", Volume: "v", Number: 3, Class: "ssd", Node: "n1", SizeBytes: 7, Turn: 2, State: records.VolumeTrashed}
	lie := records.VolumeReport{ID: ident(1), Claim: "data", Volume: "v", Number: 99, Class: "evil", SizeBytes: 1, Turn: 2, State: records.VolumeTrashed}
	with := func(r records.VolumeReport, change func(*records.VolumeReport)) *records.VolumeReport {
		change(&r)
		return &r
	}
	for _, c := range []struct {
		name   string
		volume *records.Volume
		stored *records.VolumeReport
		known  bool // the member
		says   hello
		report records.VolumeReport
		want   *records.VolumeReport
		told   string // in the log
	}{
		{"a volume that a record has on another node", &kept, nil, true, n2, lie, nil, "volume v of default/db-1 is on node n1"},
		{"... and what its node said stands", &kept, &said, true, n2, lie, &said, "is on node n1"},
		{"what lies in another's trash", nil, &said, true, n2, lie, &said, "is on node n1"},
		{"... nor is it erased by another", nil, &said, true, n2, *with(lie, func(r *records.VolumeReport) { r.State = records.VolumeErased }), &said, "is on node n1"},
		{"a member that nobody knows", nil, nil, false, n2, lie, nil, "which the store does not know"},
		{"the node of the record, whose size and class are the record's", &kept, nil, true, n1, lie, &said, ""},
		{"the node of the trash, whose number stays", nil, &said, true, n1, *with(lie, func(r *records.VolumeReport) { r.Turn = 5 }),
			with(said, func(r *records.VolumeReport) { r.Turn = 5 }), ""},
		{"the node of the trash, which erased it", nil, &said, true, n1, *with(lie, func(r *records.VolumeReport) { r.State = records.VolumeErased }), nil, ""},
		{"... or cannot get it out", nil, &said, true, n1, *with(lie, func(r *records.VolumeReport) { r.State = records.VolumeRefused }),
			with(said, func(r *records.VolumeReport) { r.State = records.VolumeRefused }), ""},
		{"what it was left with is in its trash now", nil, with(said, func(r *records.VolumeReport) { r.State = records.VolumeLeft }), true, n1, lie, &said, ""},
		{"... or could not be moved there, and is tried again", nil, with(said, func(r *records.VolumeReport) { r.State = records.VolumeLeft }), true, n1,
			*with(lie, func(r *records.VolumeReport) { r.State = records.VolumeRefused }), with(said, func(r *records.VolumeReport) { r.State = records.VolumeLeft }), ""},
		{"what the store never knew is only the node's word", nil, nil, true, n2, lie,
			with(lie, func(r *records.VolumeReport) { r.Node, r.Unproven = "n2", true }), ""},
		{"... and stays that", nil, with(lie, func(r *records.VolumeReport) { r.Node, r.Unproven = "n2", true }), true, n2, lie,
			with(lie, func(r *records.VolumeReport) { r.Node, r.Unproven = "n2", true }), ""},
		{"a claim to proof that it has not", nil, nil, true, n2, *with(lie, func(r *records.VolumeReport) { r.Node = "n1" }),
			with(lie, func(r *records.VolumeReport) { r.Node, r.Unproven = "n2", true }), ""},
		{"long words are cut", &kept, nil, true, n1, *with(lie, func(r *records.VolumeReport) { r.Message = strings.Repeat("m", 1<<14) }),
			with(said, func(r *records.VolumeReport) { r.Message = strings.Repeat("m", volumeTextBytes) }), ""},
		{"that a volume was left on a host that is off, which only the engine says", &kept, nil, true, n1,
			*with(lie, func(r *records.VolumeReport) { r.State = records.VolumeLeft }), nil, "a node cannot report"},
		{"what is too long beside them is not stored", nil, nil, true, n2, *with(lie, func(r *records.VolumeReport) { r.Class = strings.Repeat("c", 1<<14) }),
			nil, "more than 4096 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			if c.known {
				r.known(1)
			}
			if c.volume != nil {
				r.Record(store.VolumeKey(ident(1), "data"), *c.volume)
			}
			key := store.VolumeReportKey(ident(1), "data", "v")
			if c.stored != nil {
				r.Record(key, *c.stored)
			}
			h := r.hand(c.says)
			h.say(false, c.report)
			h.tells()
			kv, there := r.Get(key)
			if there != (c.want != nil) {
				t.Fatalf("stored: %v", there)
			}
			if there {
				if got, err := store.Decode[records.VolumeReport](kv); err != nil || got != *c.want {
					t.Errorf("stored %+v, %v\nwant %+v", got, err, *c.want)
				}
			}
			if log := r.logs.String(); !strings.Contains(log, c.told) || c.told == "" && strings.Contains(log, "message of a node refused") {
				t.Errorf("logged %s; want %q", log, c.told)
			}
			if got := r.server.Refusals()[LimitOwner]; (got > 0) != (c.told != "") {
				t.Errorf("%d refusals were counted", got)
			}
		})
	}
}

// What only a node speaks of is noted for a member that the store knows, within its bounds.
func TestWhatANodeSaysOfAVolumeThatNobodyKnowsIsJudged(t *testing.T) {
	report := records.VolumeReport{ID: ident(1), Claim: "data", Volume: "v", State: records.VolumeTrashed}
	long := func(bytes int) records.VolumeReport {
		r := report
		r.Node = "n1"
		r.Class = strings.Repeat("c", bytes-len(store.Encode(r)))
		return r
	}
	with := func(claim spec.ClaimName, r records.VolumeReport) records.VolumeReport {
		r.Claim = claim
		return r
	}
	for _, c := range []struct {
		name             string
		identity, member bool
		unproven         int // so many are noted already
		report           records.VolumeReport
		want             verdict
	}{
		{"of a member that nobody knows", false, false, 0, report, stale},
		{"of one that has an identity", true, false, 0, report, keep},
		{"of one whose identity is lost, and that lives", false, true, 0, report, keep},
		{"whose place another volume has, on another node", true, false, 0, with("wal", report), keep},
		{"the last that is noted", true, false, maxUnproven - 1, report, keep},
		{"one more", true, false, maxUnproven, report, stale},
		{"one as long as may be", true, false, 0, long(documentBytes), keep},
		{"one that is longer", true, false, 0, long(documentBytes + 1), stale},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			if c.identity {
				r.known(1)
			}
			if c.member {
				r.Record(store.MemberKey(ident(1)), testMember(1, 20, "n1", "uid1"))
			}
			r.Record(store.VolumeKey(ident(1), "wal"), records.Volume{ID: ident(1), Claim: "wal", UID: "next", Node: "n2", Fate: records.FateKeep})
			r.Cache.Look(func(v cache.View) {
				o := newVolumeOwner(v, "n1")
				o.unproven = c.unproven
				if got, verdict, why := o.judge(c.report); verdict != c.want || got.Unproven != (c.want == keep) {
					t.Errorf("got %v, %q, %+v", verdict, why, got)
				}
			})
		})
	}
}

// The decision rests on what the cache shows; the write compares it with the store, so that
// a record that was made meanwhile counts.
func TestAReportOfAVolumeIsGuardedByWhatItWasJudgedBy(t *testing.T) {
	r := newStill(t)
	r.known(1)
	var units []store.Txn
	s := pendingVolumeReports{reports: map[records.VolumeID]records.VolumeReport{"v": {ID: ident(1), Claim: "data", Volume: "v", State: records.VolumeTrashed}}}
	r.Cache.Look(func(v cache.View) { units, _ = s.transactions(v, "n2") })
	if len(units) != 1 {
		t.Fatalf("%d writes; want one", len(units))
	}
	r.Record(store.VolumeKey(ident(1), "data"), records.Volume{ID: ident(1), Claim: "data", UID: "v", Node: "n1"})
	if _, err := r.Store.Commit(t.Context(), units[0]); err == nil {
		t.Error("it was stored, though the volume is another node's by now")
	}
}

// One node cannot fill the store with volumes that nobody else knows of.
func TestTheTrashOfWhichOnlyTheNodeKnowsIsBounded(t *testing.T) {
	r := newStill(t)
	r.known(1)
	h := r.hand(n2)
	var all []records.VolumeReport
	for i := range maxUnproven + 100 {
		all = append(all, records.VolumeReport{ID: ident(1), Claim: "data", Volume: records.VolumeID(fmt.Sprintf("v%04d", i)), State: records.VolumeTrashed})
	}
	for _, said := range [][]records.VolumeReport{all, all[maxUnproven:]} {
		h.say(false, said...)
		if again, err := h.se.storeVolumeReports(); again || err != nil {
			t.Fatalf("again %v, %v", again, err)
		}
		r.catchUp()
		if got := len(r.volumes()); got != maxUnproven {
			t.Errorf("%d are stored; want %d", got, maxUnproven)
		}
	}
}
