package dispatch

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// trashed is what a node says of a volume of db-1 that lies in its trash.
func trashed(volume records.VolumeID, message string) records.VolumeReport {
	return records.VolumeReport{ID: ident(1), Claim: "data", Volume: volume, State: records.VolumeTrashed, Message: message}
}

// volumes is what is stored of volumes of db-1: messages by volume.
func (r *rig) volumes() map[records.VolumeID]string {
	r.t.Helper()
	_, kvs, err := r.Store.Snapshot(r.t.Context(), store.KindVolumeReport+"/")
	if err != nil {
		r.t.Fatal(err)
	}
	said := map[records.VolumeID]string{}
	for _, kv := range kvs {
		report, err := store.Decode[records.VolumeReport](kv)
		if err != nil {
			r.t.Fatal(err)
		}
		said[report.Volume] = report.Message
	}
	return said
}

// What the store does not take at once is stored later, unless the node says something newer
// meanwhile.
func TestWhatANodeSaysOfVolumesIsNotLostWhileTheStoreIsAway(t *testing.T) {
	type saying struct {
		full    bool
		reports []records.VolumeReport
	}
	list := func(full bool, reports ...records.VolumeReport) *saying { return &saying{full, reports} }
	for _, c := range []struct {
		name   string
		first  *saying
		during *saying // while the store refuses the first
		want   map[records.VolumeID]string
	}{
		{"it is said once", list(false, trashed("a", "1")), nil, map[records.VolumeID]string{"kept": "", "a": "1"}},
		{"another volume is spoken of", list(false, trashed("a", "1")), list(false, trashed("b", "2")), map[records.VolumeID]string{"kept": "", "a": "1", "b": "2"}},
		{"the same volume is", list(false, trashed("a", "1"), trashed("b", "1")), list(false, trashed("a", "2")), map[records.VolumeID]string{"kept": "", "a": "2", "b": "1"}},
		{"a whole list comes", list(false, trashed("a", "1")), list(true, trashed("b", "2")), map[records.VolumeID]string{"b": "2"}},
		{"a whole list names what is kept", list(true, trashed("kept", "1")), nil, map[records.VolumeID]string{"kept": "1"}},
		{"a whole list is refused, and more is said", list(true, trashed("a", "1")), list(false, trashed("b", "2")), map[records.VolumeID]string{"a": "1", "b": "2"}},
		{"an empty list is refused, and more is said", list(true), list(false, trashed("b", "2")), map[records.VolumeID]string{"b": "2"}},
		{"an empty list is refused", list(true), nil, map[records.VolumeID]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			r.known(1)
			r.Record(store.VolumeKey(ident(1), "data"), records.Volume{ID: ident(1), Claim: "data", UID: "kept", Node: "n1", Fate: records.FateKeep})
			for _, volume := range []records.VolumeID{"kept", "before"} { // from when they were being given up
				report := trashed(volume, "")
				report.Node = "n1"
				r.Record(store.VolumeReportKey(ident(1), "data", volume), report)
			}
			c.want["before"] = "" // until the node says that it is erased
			h := r.hand(n1)
			h.tells()
			h.say(c.first.full, c.first.reports...)
			during := c.during
			r.Store.Fail(func(call memstore.Call) memstore.Fault {
				if call.Method == "Get" {
					t.Error("a store that is away is asked once more")
				}
				if call.Method != "Commit" {
					return memstore.Fault{}
				}
				if during != nil {
					h.say(during.full, during.reports...)
					during = nil
				}
				return memstore.Fault{Err: store.ErrUnavailable}
			})
			if again, err := h.se.storeVolumeReports(); !again || err != nil {
				t.Fatalf("refused by the store: again %v, %v", again, err)
			}
			if got := r.volumes(); len(got) != 2 {
				t.Fatalf("stored %v", got)
			}
			r.Store.Fail(nil)
			if again, err := h.se.storeVolumeReports(); again || err != nil {
				t.Fatalf("stored: again %v, %v", again, err)
			}
			if got := r.volumes(); !maps.Equal(got, c.want) {
				t.Errorf("stored %v; want %v", got, c.want)
			}
			before, _, _ := r.Store.Get(t.Context())
			if again, err := h.se.storeVolumeReports(); again || err != nil {
				t.Errorf("with nothing to say: again %v, %v", again, err)
			}
			if after, _, _ := r.Store.Get(t.Context()); after != before {
				t.Error("it was stored twice")
			}
		})
	}
}

// A report that a record made meanwhile contradicts is judged anew; only when the session is
// over does its node begin another.
func TestAConflictOverAVolumeEndsNoSessionThatLives(t *testing.T) {
	for name, unread := range map[string]bool{"it lives": false, "nobody can tell": true} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			r.known(1)
			h := r.hand(n1)
			h.tells()
			b := trashed("b", "1")
			b.Claim = "wal"
			h.say(false, trashed("a", "1"), b)
			key, raced := store.VolumeKey(ident(1), "data"), false
			r.Store.Fail(func(c memstore.Call) memstore.Fault {
				switch {
				case c.Method == "Commit" && !raced:
					raced = true
					r.Record(key, records.Volume{ID: ident(1), Claim: "data", UID: "a", Node: "n2"})
				case c.Method == "Get" && unread:
					return memstore.Fault{Err: store.ErrUnavailable}
				}
				return memstore.Fault{}
			})
			if again, err := h.se.storeVolumeReports(); !again || err != nil {
				t.Fatalf("again %v, %v", again, err)
			}
			r.Store.Fail(nil)
			r.catchUp()
			if again, err := h.se.storeVolumeReports(); again || err != nil {
				t.Fatalf("judged anew: again %v, %v", again, err)
			}
			if got := r.volumes(); !maps.Equal(got, map[records.VolumeID]string{"b": "1"}) {
				t.Errorf("stored %v; want what is the node's own", got)
			}
		})
	}
}

func TestANodeThatMayHaveNothingWrittenNowIsHeardLater(t *testing.T) {
	r := newStill(t)
	r.known(1)
	h := r.hand(n1)
	r.server.writes.charge("n1", 2*allowanceBytes)
	h.say(false, trashed("a", "1"))
	if again, err := h.se.storeVolumeReports(); !again || err != nil {
		t.Fatalf("again %v, %v", again, err)
	}
	if got := r.volumes(); len(got) != 0 || r.server.Refusals()[LimitRate] != 1 {
		t.Errorf("stored %v; refused %v", got, r.server.Refusals())
	}
	r.server.writes.nodes["n1"] = balance{}
	if again, err := h.se.storeVolumeReports(); again || err != nil {
		t.Fatalf("later: again %v, %v", again, err)
	}
	if got := r.volumes(); got["a"] != "1" {
		t.Errorf("later is stored %v", got)
	}
	if got := r.server.writes.nodes["n1"].bytes; got >= allowanceBytes {
		t.Error("what was stored costs nothing")
	}
}

func TestWhatCannotBeAWordAboutAVolumeIsNotHeard(t *testing.T) {
	good := trashed("v", "")
	with := func(change func(*records.VolumeReport)) []byte {
		r := good
		change(&r)
		return store.Encode(r)
	}
	padded := func(bytes int) []byte {
		doc := store.Encode(good)
		return append(doc, strings.Repeat(" ", bytes-len(doc))...)
	}
	for _, c := range []struct {
		name    string
		doc     []byte
		ends    bool // the session
		refused bool
		heard   bool
	}{
		{"one of a member of number 0", with(func(r *records.VolumeReport) { r.ID.Ordinal = 0 }), false, false, true},
		{"as long as may be", padded(reportBytes), false, false, true},
		{"longer than may be", padded(reportBytes + 1), false, true, false},
		{"no document", []byte("{"), true, false, false},
		{"of no namespace", with(func(r *records.VolumeReport) { r.ID.Namespace = "" }), true, false, false},
		{"of another key's set", with(func(r *records.VolumeReport) { r.ID.Set = "a/b" }), true, false, false},
		{"of no claim", with(func(r *records.VolumeReport) { r.Claim = "" }), true, false, false},
		{"of no volume", with(func(r *records.VolumeReport) { r.Volume = "../v" }), true, false, false},
		{"of a member below 0", with(func(r *records.VolumeReport) { r.ID.Ordinal = -1 }), true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			h := r.hand(n1)
			h.Receive(&proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{ReportsJson: [][]byte{c.doc}}}})
			if heard := len(h.se.volumeReports.reports) == 1; heard != c.heard {
				t.Errorf("heard: %v", heard)
			}
			if refused := r.server.Refusals()[LimitReports] == 1; refused != c.refused {
				t.Errorf("refused: %v", r.server.Refusals())
			}
			if got := strings.Contains(r.logs.String(), "message of a node refused"); got != c.refused {
				t.Errorf("logged %s", r.logs)
			}
			if err := h.Send(); c.ends != (status.Code(err) == codes.InvalidArgument) || !c.ends && err != nil {
				t.Errorf("the session: %v", err)
			}
		})
	}
}

// What the server is told by the fates of volumes.
func TestOrdersAboutVolumes(t *testing.T) {
	volume := records.Volume{ID: ident(1), Claim: "data", UID: "v", Number: 2, Class: "ssd", Node: "n1", Fate: records.FateReclaiming}
	kept := volume
	kept.Fate = records.FateKeep
	next := kept
	next.UID = "next"
	said := trashed("v", "")
	said.Node = "n1"
	ready := func(number int) *records.IdentityRecord {
		return &records.IdentityRecord{ID: ident(1), VolumeReady: map[spec.ClaimName]int{"data": number}}
	}
	for _, c := range []struct {
		name     string
		identity *records.IdentityRecord
		volume   any // a records.Volume, or what cannot be read
		said     *records.VolumeReport
		want     []string
	}{
		{"a volume that is kept", ready(2), kept, nil, nil},
		{"one that is being given up and was ready", ready(2), volume, nil, []string{"v Reclaiming"}},
		{"... and of which only the one before was ready", ready(1), volume, nil, []string{"v Reclaiming unused"}},
		{"... of a member that is forgotten", nil, volume, nil, []string{"v Reclaiming unused"}},
		{"what is said of a volume that is kept", ready(2), kept, &said, nil},
		{"what is said of one that another replaced", ready(2), next, &said, []string{"v Gone"}},
		{"what is said of one that no record names", ready(2), nil, &said, []string{"v Gone"}},
		{"what is said of one whose record cannot be read", ready(2), "{", &said, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			if c.identity != nil {
				r.Record(store.IdentityKey(ident(1)), *c.identity)
			}
			if c.volume != nil {
				r.Record(store.VolumeKey(ident(1), "data"), c.volume)
			}
			if c.said != nil {
				r.Record(store.VolumeReportKey(ident(1), "data", "v"), *c.said)
			}
			h := r.hand(n1)
			var got []string
			for _, o := range h.orders() {
				words := string(o.Volume) + " " + string(o.Fate)
				if o.Unused {
					words += " unused"
				}
				got = append(got, words)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := h.orders(); len(again) != 0 {
				t.Errorf("told again: %v", again)
			}
		})
	}
}

// What the cache does not show yet is known all the same: an end that follows at once is not taken for
// that of a volume that nobody has heard of.
func TestWhatIsErasedJustAfterItWasStoredIsForgotten(t *testing.T) {
	r := newStill(t)
	r.known(1)
	h := r.hand(n1)
	h.tells()
	h.say(false, trashed("a", "1"))
	if again, err := h.se.storeVolumeReports(); again || err != nil {
		t.Fatalf("again %v, %v", again, err)
	}
	r.catchUp()
	stored := h.se.volumesRev
	if kv, _ := r.Get(store.VolumeReportKey(ident(1), "data", "a")); stored == 0 || kv.Mod != stored {
		t.Fatalf("stored at revision %d, noted as %d", kv.Mod, stored)
	}
	erased := trashed("a", "1")
	erased.State = records.VolumeErased
	h.say(false, erased)
	h.se.volumesRev = stored + 1 // as if the cache were one revision behind
	if again, err := h.se.storeVolumeReports(); !again || err != nil {
		t.Fatalf("before the cache shows it: again %v, %v", again, err)
	}
	h.se.volumesRev = stored
	if again, err := h.se.storeVolumeReports(); again || err != nil {
		t.Fatalf("after that: again %v, %v", again, err)
	}
	if got := r.volumes(); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
}
