package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Proofs are read once more when an action is written: what the planner relied on must be
// what the store says of this very life, volume and address.
func TestAnActionWithoutItsProofIsRefused(t *testing.T) {
	id, life, another := member(0), spec.Token{Epoch: 1, Number: 1}, spec.Token{Epoch: 1, Number: 2}
	report := func(token spec.Token, phase records.Phase) store.Op {
		return store.Put(store.ReportKey(id), store.Encode(records.Report{ID: id, Token: token, Phase: phase}))
	}
	volume := func(uid records.VolumeID, fate records.VolumeFate) records.Volume {
		return records.Volume{ID: id, Claim: "data", UID: uid, Number: 1, Class: "local", Node: "n1", Fate: fate}
	}
	stored := func(fate records.VolumeFate) store.Op {
		return store.Put(store.VolumeKey(id, "data"), store.Encode(volume("v", fate)))
	}
	said := func(uid records.VolumeID, state records.VolumeState) store.Op {
		return store.Put(store.VolumeReportKey(id, "data", uid), store.Encode(records.VolumeReport{ID: id, Claim: "data", Volume: uid, Node: "n1", State: state}))
	}
	wanted := func(uid records.VolumeID) store.Op {
		return store.Put(store.VolumeRequestKey(id, "data"), store.Encode(records.VolumeRequest{ID: id, Claim: "data", Volume: uid, Verb: records.VerbRestore, Token: life}))
	}
	address := func(of spec.Identity, freed bool) store.Op {
		r := records.AddressRecord{Address: ip, ID: of}
		if at := time.Unix(1, 0); freed {
			r.FreedAt = &at
		}
		return store.Put(store.AddressKey(ip), store.Encode(r))
	}
	fenced := store.Put(store.FenceKey("n1"), store.Encode(records.Fence{Node: "n1", UID: "x"}))
	silent := store.Del(store.SessionKey("n1"))
	dead, bare := store.Del(store.MemberKey(id)), store.Del(store.VolumeKey(id, "data"))
	unsaid, unknown := store.Del(store.ReportKey(id)), store.Del(store.AddressKey(ip))

	begin := func(fresh bool, volumes ...records.Volume) plan.Start {
		return plan.Start{Member: records.Member{ID: id, Token: another, Node: "n1", Address: ip}, NewAddress: fresh, Volumes: volumes}
	}
	set := func(v records.Volume) plan.SetVolumes { return plan.SetVolumes{Volumes: []records.Volume{v}} }
	back := plan.RestoreVolume{Volume: volume("v", records.FateRestoring)}
	drop := plan.DropVolume{ID: id, Claim: "data", Volume: "v"}
	left := drop
	left.Left = true
	forget := func(token spec.Token, lost spec.NodeName) plan.Forget {
		return plan.Forget{ID: id, Token: token, Lost: lost}
	}
	for _, c := range []struct {
		name   string
		ops    []store.Op // what differs from a life that stopped, with its volume and address
		action plan.Action
		want   bool // it is done
	}{
		{"stop: its life", nil, plan.Stop{ID: id, Token: life}, true},
		{"stop: another life", nil, plan.Stop{ID: id, Token: another}, false},
		{"stop: no life", []store.Op{dead}, plan.Stop{ID: id, Token: life}, false},

		{"forget: it says so", nil, forget(life, ""), true},
		{"forget: it runs", []store.Op{report(life, records.PhaseRunning)}, forget(life, ""), false},
		{"forget: another life said so", []store.Op{report(another, records.PhaseStopped)}, forget(life, ""), false},
		{"forget: another life than that which said so", []store.Op{report(another, records.PhaseStopped)}, forget(another, ""), false},
		{"forget: nothing was said", []store.Op{unsaid}, forget(life, ""), false},
		{"forget: its node is lost", []store.Op{unsaid}, forget(life, "n1"), true},
		{"forget: another node is lost", []store.Op{unsaid}, forget(life, "n2"), false},
		{"forget: no life", []store.Op{dead}, forget(life, ""), false},

		{"start: the address is its own", nil, begin(false), true},
		{"start: its own is claimed once more", nil, begin(true), true},
		{"start: the address is another's", []store.Op{address(member(1), false)}, begin(false), false},
		{"start: another's is claimed", []store.Op{address(member(1), false)}, begin(true), false},
		{"start: a freed one is claimed", []store.Op{address(member(1), true)}, begin(true), true},
		{"start: its own was freed", []store.Op{address(id, true)}, begin(false), false},
		{"start: nobody has it, and it is claimed", []store.Op{unknown}, begin(true), true},
		{"start: nobody has it", []store.Op{unknown}, begin(false), false},
		{"start: a new volume", []store.Op{bare}, begin(false, volume("w", records.FateKeep)), true},
		{"start: a new volume beside one", nil, begin(false, volume("w", records.FateKeep)), false},

		{"set: as it is", nil, set(volume("v", records.FateKeep)), true},
		{"set: there is none", []store.Op{bare}, set(volume("v", records.FateKeep)), false},
		{"set: there is another", nil, set(volume("w", records.FateKeep)), false},
		{"give up: nobody lives", []store.Op{dead, stored(records.FateDelete)}, set(volume("v", records.FateReclaiming)), true},
		{"give up: a life that is over", []store.Op{stored(records.FateDelete)}, set(volume("v", records.FateReclaiming)), false},
		{"lost: nobody lives", []store.Op{dead}, set(volume("v", records.FateLost)), true},
		{"lost: a life that is over", nil, set(volume("v", records.FateLost)), true},
		{"lost: a life that runs", []store.Op{report(life, records.PhaseRunning)}, set(volume("v", records.FateLost)), false},
		{"lost: a life after that which is over", []store.Op{report(another, records.PhaseStopped)}, set(volume("v", records.FateLost)), false},
		{"lost: a life of which nothing was said", []store.Op{unsaid}, set(volume("v", records.FateLost)), false},
		{"keep: it is there after all", []store.Op{stored(records.FateLost), said("v", records.VolumeFound)}, set(volume("v", records.FateKeep)), true},
		{"keep: it is lost", []store.Op{stored(records.FateLost), said("v", records.VolumeAbsent)}, set(volume("v", records.FateKeep)), false},
		{"keep: it came back", []store.Op{stored(records.FateRestoring), said("v", records.VolumeFound)}, set(volume("v", records.FateKeep)), true},
		{"keep: it is to come back", []store.Op{stored(records.FateRestoring)}, set(volume("v", records.FateKeep)), false},

		{"bring back: it lies in the trash alone", []store.Op{dead, bare, said("v", records.VolumeTrashed), wanted("v")}, back, true},
		{"bring back: a life may get another", []store.Op{bare, said("v", records.VolumeTrashed), wanted("v")}, back, false},
		{"bring back: it is on its way", []store.Op{dead, stored(records.FateRestoring), said("v", records.VolumeTrashed), wanted("v")}, back, false},
		{"bring back: nothing is said of it", []store.Op{dead, bare, wanted("v")}, back, false},
		{"bring back: another is in the trash", []store.Op{dead, bare, said("w", records.VolumeTrashed), wanted("w")}, back, false},
		{"bring back: it was erased", []store.Op{dead, bare, said("v", records.VolumeErased), wanted("v")}, back, false},

		{"drop: its node says so", []store.Op{stored(records.FateReclaiming), said("v", records.VolumeTrashed)}, drop, true},
		{"drop: there is none", []store.Op{bare}, drop, false},
		{"drop: there is another", []store.Op{store.Put(store.VolumeKey(id, "data"), store.Encode(volume("w", records.FateReclaiming))), said("w", records.VolumeTrashed)}, drop, false},
		{"drop: it is kept", []store.Op{said("v", records.VolumeTrashed)}, drop, false},
		{"drop: left on a host that is off", []store.Op{stored(records.FateLost), fenced, silent}, left, true},
		{"drop: left on a host that nobody says is off", []store.Op{stored(records.FateLost), silent, said("v", records.VolumeAbsent)}, left, false},
		{"drop: its host is off, and it is there", []store.Op{stored(records.FateLost), fenced, silent, said("v", records.VolumeFound)}, drop, false},
	} {
		ops := base(stage{report: records.PhaseStopped, without: []string{store.EpochKey}})
		look, write := addresses(t, ops...)
		if len(c.ops) > 0 {
			write(c.ops...)
		}
		look(func(v cache.View) {
			u, err := decisionFor(v, db, c.action, time.Now())
			if (err == nil) != c.want {
				t.Errorf("%s: %v, want that it is done: %v", c.name, err, c.want)
			}
			if double := twice(u); err == nil && double != "" {
				t.Errorf("%s: %s stands twice in the transaction", c.name, double)
			}
		})
	}
}

// twice is a key that a transaction compares or writes twice; "": none.
func twice(u decision) string {
	var seen, written []string
	for _, g := range u.If {
		if slices.Contains(seen, g.Key) {
			return g.Key
		}
		seen = append(seen, g.Key)
	}
	for _, op := range u.Then {
		if slices.Contains(written, op.Key) {
			return op.Key
		}
		written = append(written, op.Key)
	}
	return ""
}

func TestAForgottenIdentityFreesOnlyItsOwnAddress(t *testing.T) {
	at := time.Unix(1, 0)
	for _, c := range []struct {
		name string
		held *records.AddressRecord
		all  bool // the plan says that nothing of it remains
		want bool // its address is freed, and taken from it
	}{
		{"its own", &records.AddressRecord{Address: ip, ID: member(0)}, true, true},
		{"its own, and its volume is kept", &records.AddressRecord{Address: ip, ID: member(0)}, false, false},
		{"freed before", &records.AddressRecord{Address: ip, ID: member(0), FreedAt: &at}, true, false},
		{"another's", &records.AddressRecord{Address: ip, ID: member(1)}, true, false},
		{"nobody's", nil, true, false},
	} {
		look, write := addresses(t, base(stage{report: records.PhaseStopped, without: []string{store.EpochKey, store.AddressKey(ip)}})...)
		if c.held != nil {
			write(store.Put(store.AddressKey(ip), store.Encode(c.held)))
		}
		now := time.Unix(1000, 0)
		var u decision
		look(func(v cache.View) {
			var err error
			u, err = decisionFor(v, db, plan.Forget{ID: member(0), Token: spec.Token{Epoch: 1, Number: 1}, FreeAddress: c.all}, now)
			if err != nil {
				t.Error(err)
			}
		})
		write(u.Then...)
		look(func(v cache.View) {
			id := v.Identity(member(0))
			r := v.Addresses()[ip.String()]
			if freed := r != nil && r.FreedAt != nil && r.FreedAt.Equal(now); freed != c.want || id.Address.IsValid() == c.want {
				t.Errorf("%s: freed %v, the identity has %s; want that it is freed: %v", c.name, freed, id.Address, c.want)
			}
			if m := v.Member(member(0)); m != nil {
				t.Errorf("%s: the life stands still", c.name)
			}
			if v.ModRev(store.ReportKey(member(0))) != 0 {
				t.Errorf("%s: the report stands still", c.name)
			}
		})
	}
}

// All its lives were in the networks of their nodes: there is no address to free, and nothing else of it remains.
func TestAForgottenIdentityMayHaveNoAddress(t *testing.T) {
	look, write := addresses(t, base(stage{report: records.PhaseStopped, without: []string{store.EpochKey, store.AddressKey(ip), store.IdentityKey(member(0))}})...)
	token := spec.Token{Epoch: 1, Number: 1}
	write(store.Put(store.IdentityKey(member(0)), store.Encode(records.IdentityRecord{ID: member(0), LastToken: token, ReadyToken: token})))
	var d decision
	var err error
	look(func(v cache.View) {
		d, err = decisionFor(v, db, plan.Forget{ID: member(0), Token: token, FreeAddress: true}, time.Unix(1000, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	write(d.Then...)
	look(func(v cache.View) {
		if id := v.Identity(member(0)); id == nil || id.LastToken != token || id.ReadyToken == token || v.Member(member(0)) != nil {
			t.Errorf("what remains is %+v, %+v", id, v.Member(member(0)))
		}
		if len(v.Addresses()) > 0 {
			t.Errorf("addresses: %v", v.Addresses())
		}
	})
}

// A start in the network of the node claims no address, though its node has one of the members' range.
func TestAStartInTheNetworkOfTheNodeClaimsNoAddress(t *testing.T) {
	look, _ := addresses(t, base(stage{report: records.PhaseStopped, without: []string{store.EpochKey}})...)
	of := map[bool]int{}
	for _, onHost := range []bool{false, true} {
		m := records.Member{ID: member(0), Token: spec.Token{Epoch: 1, Number: 2}, Node: "n1", Address: ip, HostNetwork: onHost}
		look(func(v cache.View) {
			d, err := decisionFor(v, db, plan.Start{Member: m, Identity: records.IdentityRecord{ID: member(0)}}, time.Unix(1000, 0))
			if err != nil {
				t.Error(err)
			}
			for _, g := range d.If {
				if g.Key == store.AddressKey(ip) {
					of[onHost]++
				}
			}
		})
	}
	if of[false] != 1 || of[true] != 0 {
		t.Errorf("its address is compared %d times in its own network, %d in that of its node; want 1 and 0", of[false], of[true])
	}
}

// Its volume may have been lost with its host: the next one has the next number, so that no
// member takes it for its first.
func TestAForgottenIdentityKeepsTheNumbersOfItsVolumesWhileItsSetExists(t *testing.T) {
	for now, want := range map[string]bool{"standing": true, "deleting": false, "gone": false} {
		look, write := addresses(t, base(stage{report: records.PhaseStopped, without: []string{store.EpochKey, store.AddressKey(ip)}})...)
		numbers := map[spec.ClaimName]int{"data": 2}
		var set records.Set
		look(func(v cache.View) {
			there := v.Set(db)
			set = *there
		})
		set.Deleting = now == "deleting"
		stored := store.Put(store.SetKey(db), store.Encode(set))
		if now == "gone" {
			stored = store.Del(store.SetKey(db))
		}
		write(stored, store.Put(store.AddressKey(ip), store.Encode(records.AddressRecord{Address: ip, ID: member(0)})),
			store.Put(store.IdentityKey(member(0)), store.Encode(records.IdentityRecord{
				ID: member(0), LastToken: spec.Token{Epoch: 1, Number: 1}, Address: ip, VolumeNumbers: numbers, VolumeReady: numbers,
			})))
		var u decision
		look(func(v cache.View) {
			var err error
			u, err = decisionFor(v, db, plan.Forget{ID: member(0), Token: spec.Token{Epoch: 1, Number: 1}, FreeAddress: true}, time.Unix(1000, 0))
			if err != nil {
				t.Error(err)
			}
		})
		write(u.Then...)
		look(func(v cache.View) {
			id := v.Identity(member(0))
			if kept := id.VolumeNumbers["data"] == 2 && id.VolumeReady["data"] == 2; kept != want {
				t.Errorf("the set is %s: the identity is %+v", now, id)
			}
		})
	}
}
