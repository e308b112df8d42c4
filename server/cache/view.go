package cache

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// View is the cache at one revision, valid during the call of Look that hands it out. Records are
// shared by all readers and must not be changed. A record is nil where there is none, and where it
// cannot be read: ModRev tells these apart.
type View struct {
	*state
	judged map[spec.Identity]*records.Report // see WithReports
}

// Rev is the store's revision that the view shows.
func (v View) Rev() store.Rev { return v.rev }

// ModRev is the revision of the last write of any key, also of one that cannot be read; 0: absent.
func (v View) ModRev(key string) store.Rev { return v.mods[key] }

// Seen compares that key is as it is in this view.
func (v View) Seen(key string) store.Compare { return store.Seen(key, v.mods[key]) }

// Epoch is the store's epoch; 0: there is none, or it cannot be read.
func (v View) Epoch() int64 { return v.epoch }

// ClusterID names the store's cluster; "": not yet.
func (v View) ClusterID() string { return v.cluster }

// Leader is the present term; zero: no server leads.
func (v View) Leader() store.Leadership { return v.leader }

// Sets lists the sets that exist, by namespace and name.
func (v View) Sets() []spec.SetRef {
	refs := make([]spec.SetRef, 0, len(v.sets))
	for ref, t := range v.sets {
		if t.set.record != nil {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, spec.SetRef.Compare)
	return refs
}

// Set is the record of a set.
func (v View) Set(ref spec.SetRef) *records.Set { return v.find(ref).set.record }

// Status is what the leader wrote last about a set.
func (v View) Status(ref spec.SetRef) *records.SetStatus { return v.find(ref).status.record }

// Revision is one revision of a set's template.
func (v View) Revision(ref spec.SetRef, h spec.RevisionHash) *records.Revision {
	return v.find(ref).revisions[h].record
}

// TemplateHash is the hash of the set's template; "": there is no such set.
func (v View) TemplateHash(ref spec.SetRef) spec.RevisionHash { return v.find(ref).hash }

// World is the plan's world of one set (also when only its volumes or
// identities remain: Set is nil then); Free, VolumeID and Now are left to the caller.
func (v View) World(ref spec.SetRef) plan.World {
	set := OfSet(v, ref)
	w := set.World()
	w.Slots = set.Slots()
	return w
}

// WorldWith is the plan's world of a set as it would be with this record of it.
func (v View) WorldWith(set *records.Set) plan.World {
	w := v.World(set.Ref)
	w.Set, w.TemplateHash, w.Budgets = set, set.RevisionHash(w.Revisions), v.budgetsOf(set)
	w.Bootstrapped, w.Isolated = v.bootstrapped[set.UID], v.isIsolated(set)
	w.Claims = claimStates(v, set.Ref, v.find(set.Ref).claimNames(set))
	if set.Spec.Template.Spec.Constrained() || v.named(set) {
		w.Nodes = v.nodesWithResidents()
	}
	return w
}

// brokenOf names the records that cannot be read without which nothing is decided for a set.
func (s *state) brokenOf(ref spec.SetRef) []string {
	var keys []string
	for key := range s.broken {
		if key == store.CountKey {
			keys = append(keys, key) // it is not known which nodes the restore waits for
		}
		if of, ok := store.RefOfKey(key); ok && of == ref {
			if kind, _ := store.Kind(key); kind != store.KindEvent && kind != store.KindStatus && kind != store.KindHistory && kind != store.KindVolumeReport {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// Member is the present life of an identity, and what it should be.
func (v View) Member(id spec.Identity) *records.Member { return v.lookup(id).member.record }

// Report is what a node said last of a life of an identity, not only of the present one.
func (v View) Report(id spec.Identity) *records.Report {
	if r := v.judged[id]; r != nil {
		return r
	}
	return v.lookup(id).report.record
}

// Identity is what outlives the lives of an identity.
func (v View) Identity(id spec.Identity) *records.IdentityRecord { return v.lookup(id).identity.record }

// UnknownLives are the lives of an identity that nodes run and the store does not know.
func (v View) UnknownLives(id spec.Identity) []plan.NodeStray { return v.unknownLives[id] }

// History is what is stored of the set's history.
func (v View) History(ref spec.SetRef) History {
	t := v.find(ref)
	return History{Base: t.base.record, BaseRev: t.base.mod, Pages: t.pageList, PageRevs: t.pageRevs}
}

// LastChange names the newest change of the set's history; zero: there is none.
func (v View) LastChange(ref spec.SetRef) (last records.ChangeID) {
	if pages := v.find(ref).pageList; len(pages) > 0 {
		last = records.LastChange(pages[len(pages)-1].Changes)
	}
	return last
}

// Addresses holds all address records by the address's text; an unreadable one
// is there without identity: it is not free.
func (v View) Addresses() map[string]*records.AddressRecord { return v.addresses }

// Bootstrapped reports whether every initial member of the set was ready once.
func (v View) Bootstrapped(uid spec.UID) bool { return v.bootstrapped[uid] }
