package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// unit is one action as a guarded write. It may stand in a transaction with
// others: the guards name all that this very decision relied on (SAFETY S7).
type unit struct {
	store.Txn
	action plan.Action
	with   []plan.Start // starts that were joined to it
	freed  *records.AddressRecord
}

// seen compares that keys are as the decision saw them.
func (u *unit) seen(v cache.View, keys ...string) {
	for _, key := range keys {
		u.If = append(u.If, v.Seen(key))
	}
}

func (u *unit) absent(key string) { u.If = append(u.If, store.Absent(key)) }

func (u *unit) put(key string, record any) {
	u.Then = append(u.Then, store.Put(key, store.Encode(record)))
}

func (u *unit) remove(key string) { u.Then = append(u.Then, store.Del(key)) }

// removeSeen removes a key if it is as the decision saw it.
func (u *unit) removeSeen(v cache.View, key string) { u.seen(v, key); u.remove(key) }

// removeIfThere does so if it is there at all.
func (u *unit) removeIfThere(v cache.View, key string) {
	if v.ModRev(key) != 0 {
		u.removeSeen(v, key)
	}
}

// maxRevisions is how many revisions one transaction removes with their set.
const maxRevisions = 80

// units turns what of a plan made on v is written now into units, in their order. With a
// new revision comes one unit of it and as many starts as fit.
func units(v cache.View, ref spec.SetRef, p plan.Plan, now time.Time) ([]unit, error) {
	var list []unit
	for _, a := range p.Batch() {
		u, err := translate(v, ref, a, now)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	if len(list) > 0 {
		if _, is := list[0].action.(plan.AddRevision); is {
			return joinRevision(list), nil
		}
	}
	return list, nil
}

// joinRevision puts starts into the transaction of the revision they run.
func joinRevision(list []unit) []unit {
	head := list[0]
	for _, u := range list[1:] {
		start, ok := u.action.(plan.Start)
		if !ok || len(head.If)+len(u.If) > store.MaxOps/2 || len(head.Then)+len(u.Then) > store.MaxOps/2 {
			continue
		}
		head.with = append(head.with, start)
		for _, g := range u.If {
			if g.Key != head.Then[0].Key { // the revision: absent, as the head says
				head.If = append(head.If, g)
			}
		}
		head.Then = append(head.Then, u.Then...)
	}
	return []unit{head}
}

func translate(v cache.View, ref spec.SetRef, a plan.Action, now time.Time) (u unit, err error) {
	u.action = a
	switch a := a.(type) {
	case plan.AddRevision:
		key := store.RevisionKey(ref, a.Revision.Hash)
		u.absent(key)
		u.put(key, a.Revision)
	case plan.RaiseRevision:
		key := store.RevisionKey(ref, a.Revision.Hash)
		u.seen(v, key)
		u.put(key, a.Revision)
	case plan.PruneRevision:
		u.removeSeen(v, store.RevisionKey(ref, a.Hash))
	case plan.Start:
		err = u.start(v, a)
	case plan.Stop:
		err = u.stop(v, a)
	case plan.Forget:
		err = u.forget(v, a, now)
	case plan.MarkReady:
		id := a.Identity.ID
		u.seen(v, store.MemberKey(id), store.IdentityKey(id))
		u.put(store.IdentityKey(id), a.Identity)
	case plan.MarkBootstrapped:
		set, _ := v.Set(ref)
		u.absent(store.BootstrappedKey(set.UID))
		u.put(store.BootstrappedKey(set.UID), records.Bootstrapped{SetUID: set.UID})
		u.removeIfThere(v, store.WasBootstrappedKey(ref))
	case plan.ForgetBootstrapped:
		u.removeSeen(v, store.WasBootstrappedKey(ref))
	case plan.SetVolumes:
		err = u.setVolumes(v, a)
	case plan.DropVolume:
		err = u.dropVolume(v, a, now)
	case plan.RestoreVolume:
		err = u.restoreVolume(v, a)
	case plan.VoidRequest:
		u.removeSeen(v, store.VolumeRequestKey(a.ID, a.Claim)) // one that was made since stays
	case plan.RemoveSet:
		u.removeSet(v, ref)
	default:
		err = fmt.Errorf("do %T: the engine does not know this action", a)
	}
	return u, err
}

// start guards what the new life takes the place of, its node, its revision, its
// volumes and its address.
func (u *unit) start(v cache.View, a plan.Start) error {
	m := a.Member
	u.seen(v, store.MemberKey(m.ID), store.ReportKey(m.ID), store.IdentityKey(m.ID), store.RevisionKey(m.ID.Ref(), m.Revision))
	u.seen(v, store.NodeKey(m.Node), store.FactsKey(m.Node), store.SessionKey(m.Node))
	for _, mount := range m.Volumes {
		u.seen(v, store.VolumeKey(m.ID, mount.Claim))
	}
	for _, volume := range a.Volumes {
		if v.ModRev(store.VolumeKey(m.ID, volume.Claim)) != 0 {
			return fmt.Errorf("start %s: its volume of the claim %s has a record already", m.ID, volume.Claim)
		}
		u.put(store.VolumeKey(m.ID, volume.Claim), volume)
	}
	for _, volume := range a.Moved { // which is guarded: the life uses it
		u.put(store.VolumeKey(m.ID, volume.Claim), volume)
	}
	if err := u.address(v, a); err != nil {
		return err
	}
	u.lost(v, a.Lost)
	u.strays(v)
	u.put(store.MemberKey(m.ID), m)
	u.answer(v, m.ID)
	u.put(store.IdentityKey(m.ID), a.Identity)
	if v.ModRev(store.ReportKey(m.ID)) != 0 {
		u.remove(store.ReportKey(m.ID))
	}
	return nil
}

// strays guards that no node has joined or told of lives that the store does not know since
// v: what is begun, given up or freed must not be one of theirs.
func (u *unit) strays(v cache.View) { u.seen(v, store.HellosKey) }

// lost guards a proof by deadline: that the node has no session, and had none since, for
// each begins by writing its facts. "": there is another proof.
func (u *unit) lost(v cache.View, node spec.NodeName) {
	if node == "" {
		return
	}
	u.absent(store.SessionKey(node))
	u.seen(v, store.FactsKey(node))
}

// address claims a new address, or checks that a kept one is still the identity's.
func (u *unit) address(v cache.View, a plan.Start) error {
	ip := a.Member.Address
	held := v.Addresses()[ip.String()]
	free := held == nil || held.FreedAt != nil
	if free && !a.NewAddress || !free && held.ID != a.Member.ID {
		return fmt.Errorf("start %s: its address %s is not its own in the store (record %+v)", a.Member.ID, ip, held)
	}
	u.seen(v, store.AddressKey(ip))
	if a.NewAddress {
		u.put(store.AddressKey(ip), records.AddressRecord{Address: ip, ID: a.Member.ID})
	}
	return nil
}

// answer removes the request that was made of the life that ends or ended.
func (u *unit) answer(v cache.View, id spec.Identity) {
	u.removeIfThere(v, store.RequestKey(id))
}

func (u *unit) stop(v cache.View, a plan.Stop) error {
	m, _ := v.Member(a.ID)
	if m == nil || m.Token != a.Token {
		return fmt.Errorf("stop %s: token %s is not its life", a.ID, a.Token)
	}
	u.seen(v, store.MemberKey(a.ID))
	for _, volume := range a.Volumes {
		u.volume(v, volume)
	}
	u.put(store.MemberKey(a.ID), a.Record(*m))
	u.answer(v, a.ID)
	return nil
}

// forget removes what is proven over. The proof is read once more: a report of
// this very token that says so, or that its node has no session.
func (u *unit) forget(v cache.View, a plan.Forget, now time.Time) error {
	m, _ := v.Member(a.ID)
	r, _ := v.Report(a.ID)
	id, _ := v.Identity(a.ID)
	said := r != nil && r.Token == a.Token && r.Phase.Over()
	if m == nil || m.Token != a.Token || !said && m.Node != a.Lost {
		return fmt.Errorf("forget %s: nothing proves token %s over", a.ID, a.Token)
	}
	u.seen(v, store.IdentityKey(a.ID), store.MemberKey(a.ID), store.ReportKey(a.ID))
	u.remove(store.MemberKey(a.ID))
	if v.ModRev(store.ReportKey(a.ID)) != 0 {
		u.remove(store.ReportKey(a.ID))
	}
	u.lost(v, a.Lost)
	u.answer(v, a.ID)
	if id == nil {
		return nil
	}
	set, _ := v.Set(a.ID.Ref())
	a.FreeAddress = a.FreeAddress && u.free(v, id, now)
	u.put(store.IdentityKey(a.ID), a.Record(*id, set))
	return nil
}

// free puts the identity's address into quarantine; false: it has none of its own, and
// whoever has it keeps it.
func (u *unit) free(v cache.View, id *records.IdentityRecord, now time.Time) bool {
	ip := id.Address
	if held := v.Addresses()[ip.String()]; held == nil || held.ID != id.ID || held.FreedAt != nil {
		return false
	}
	freed := now.UTC()
	u.strays(v)
	u.seen(v, store.AddressKey(ip))
	u.freed = &records.AddressRecord{Address: ip, ID: id.ID, FreedAt: &freed}
	u.put(store.AddressKey(ip), *u.freed)
	return true
}

// removeSet removes a set's record with all that is of no use without it; a set
// with very many revisions loses those first. Volumes and identities stay.
func (u *unit) removeSet(v cache.View, ref spec.SetRef) {
	revisions := v.World(ref).Revisions
	for _, r := range revisions[:min(len(revisions), maxRevisions)] {
		u.remove(store.RevisionKey(ref, r.Hash))
	}
	if len(revisions) > maxRevisions {
		return
	}
	set, _ := v.Set(ref)
	if v.ModRev(store.StatusKey(ref)) != 0 {
		u.remove(store.StatusKey(ref))
	}
	if v.Bootstrapped(set.UID) { // a uid is never used again
		u.remove(store.BootstrappedKey(set.UID))
		if slices.ContainsFunc(v.Volumes(ref), plan.Kept) {
			u.put(store.WasBootstrappedKey(ref), records.Bootstrapped{SetUID: set.UID})
		}
	}
	u.closeHistory(v, ref)
	u.remove(store.SetKey(ref))
}
