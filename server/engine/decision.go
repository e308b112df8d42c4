package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// decision is one action as a transaction, which compares all that this decision relied on
// (SAFETY S7). It may share a transaction of the store with others.
type decision struct {
	store.Txn
	action     plan.Action
	alsoStarts []plan.Start // starts that were joined to it
	freed      *records.AddressRecord
}

// seen compares that keys are as they are in v.
func (d *decision) seen(v cache.View, keys ...string) {
	for _, key := range keys {
		d.If = append(d.If, v.Seen(key))
	}
}

func (d *decision) absent(key string) { d.If = append(d.If, store.Absent(key)) }

func (d *decision) put(key string, record any) {
	d.Then = append(d.Then, store.Put(key, store.Encode(record)))
}

// add does a write that was made before.
func (d *decision) add(op store.Op) { d.Then = append(d.Then, op) }

// putSeen writes a record if its key is as it is in v.
func (d *decision) putSeen(v cache.View, key string, record any) {
	d.seen(v, key)
	d.put(key, record)
}

func (d *decision) remove(key string) { d.Then = append(d.Then, store.Del(key)) }

// removeSeen removes a key if it is as it is in v.
func (d *decision) removeSeen(v cache.View, key string) { d.seen(v, key); d.remove(key) }

// removeIfThere does so if v has the key.
func (d *decision) removeIfThere(v cache.View, key string) {
	if v.ModRev(key) != 0 {
		d.removeSeen(v, key)
	}
}

// dropIfThere removes a key that v has, and compares nothing: the caller does, or need not.
func (d *decision) dropIfThere(v cache.View, key string) {
	if v.ModRev(key) != 0 {
		d.remove(key)
	}
}

// asStored is t as records have it: what is read of them says the same.
func asStored(t time.Time) time.Time { return t.UTC().Round(0) }

// maxRevisions is how many revisions one transaction removes with their set.
const maxRevisions = 80

// decisions makes the decisions of what of a plan made on v is written now, in their order. A new
// revision and as many starts as fit are one decision.
func decisions(v cache.View, ref spec.SetRef, p plan.Plan, now time.Time) ([]decision, error) {
	var list []decision
	for _, a := range p.Batch() {
		d, err := decisionFor(v, ref, a, now)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	if len(list) > 0 {
		if _, is := list[0].action.(plan.AddRevision); is {
			return joinRevision(list), nil
		}
	}
	return list, nil
}

// joinRevision puts starts into the transaction of the revision they run.
func joinRevision(list []decision) []decision {
	head := list[0]
	for _, d := range list[1:] {
		start, ok := d.action.(plan.Start)
		if !ok || len(head.If)+len(d.If) > store.MaxOps/2 || len(head.Then)+len(d.Then) > store.MaxOps/2 {
			continue
		}
		head.alsoStarts = append(head.alsoStarts, start)
		for _, g := range d.If {
			if g.Key != head.Then[0].Key { // the revision: absent, as the head says
				head.If = append(head.If, g)
			}
		}
		head.Then = append(head.Then, d.Then...)
	}
	return []decision{head}
}

// mostlyCompares and mostlyWrites are as many as a decision mostly has, with the events of it.
const (
	mostlyCompares = 10
	mostlyWrites   = 5
)

func decisionFor(v cache.View, ref spec.SetRef, a plan.Action, now time.Time) (d decision, err error) {
	d.action = a
	d.If, d.Then = make([]store.Compare, 0, mostlyCompares), make([]store.Op, 0, mostlyWrites)
	switch a := a.(type) {
	case plan.AddRevision:
		d.absent(store.RevisionKey(ref, a.Revision.Hash))
		d.put(store.RevisionKey(ref, a.Revision.Hash), a.Revision)
	case plan.RaiseRevision:
		d.putSeen(v, store.RevisionKey(ref, a.Revision.Hash), a.Revision)
	case plan.PruneRevision:
		d.removeSeen(v, store.RevisionKey(ref, a.Hash))
	case plan.Start:
		err = d.start(v, a)
	case plan.Stop:
		err = d.stop(v, a)
	case plan.Forget:
		err = d.forget(v, a, now)
	case plan.OrderHook:
		err = d.orderHook(v, a)
	case plan.Promote:
		err = promote(&d, v, a)
	case plan.ChangeInPlace:
		err = changeInPlace(&d, v, a)
	case plan.Forgotten:
		err = d.forgotten(v, a)
	case plan.PutJobs:
		putJobs(&d, v, a)
	case plan.OrderJob:
		err = orderJob(&d, v, a)
	case plan.MarkReady:
		id := a.Identity.ID
		d.seen(v, store.MemberKey(id), store.IdentityKey(id))
		d.add(store.PutRecord(store.IdentityKey(id), a.Identity))
	case plan.MarkBootstrapped:
		set := v.Set(ref)
		d.absent(store.BootstrappedKey(set.UID))
		d.put(store.BootstrappedKey(set.UID), records.Bootstrapped{SetUID: set.UID})
		d.removeIfThere(v, store.WasBootstrappedKey(ref))
	case plan.ForgetBootstrapped:
		d.removeSeen(v, store.WasBootstrappedKey(ref))
		d.removeIfThere(v, store.JobsKey(ref))
	case plan.SetVolumes:
		err = d.setVolumes(v, a)
	case plan.DropVolume:
		err = d.dropVolume(v, a, now)
	case plan.RestoreVolume:
		err = d.restoreVolume(v, a)
	case plan.LeaveVolume:
		err = leaveVolume(&d, v, a)
	case plan.VoidRequest:
		d.removeSeen(v, store.VolumeRequestKey(a.ID, a.Claim)) // a newer one stays
	case plan.BeginMove:
		err = d.beginMove(v, a)
	case plan.AdvanceMove:
		err = d.advanceMove(v, a)
	case plan.FlipMove:
		err = d.flipMove(v, a)
	case plan.BackMove:
		err = d.backMove(v, a)
	case plan.ForwardMove:
		err = forwardMove(&d, v, a)
	case plan.EndMove:
		err = d.endMove(v, a)
	case plan.VoidMoveRequest:
		d.removeSeen(v, store.MoveRequestKey(a.ID))
	case plan.RemoveClaim:
		err = d.removeClaim(v, a)
	case plan.RemoveSet:
		d.removeSet(v, ref)
	default:
		err = fmt.Errorf("do %T: the engine does not know this action", a)
	}
	return d, err
}

// start compares what the new life takes the place of, its node, its revision, its volumes and its
// address.
func (d *decision) start(v cache.View, a plan.Start) error {
	m := a.Member
	d.seen(v, store.MemberKey(m.ID), store.ReportKey(m.ID), store.IdentityKey(m.ID), store.RevisionKey(m.ID.Ref(), m.Revision))
	d.seen(v, store.NodeKey(m.Node), store.FactsKey(m.Node), store.SessionKey(m.Node))
	if err := d.startWithMove(v, &m); err != nil {
		return err
	}
	for i := range m.Volumes {
		mount := &m.Volumes[i]
		owner := mount.Owner(m.ID)
		d.seen(v, store.VolumeKey(owner, mount.Claim))
		if mount.Object { // see claimUnused
			d.seen(v, store.ClaimKey(m.ID.Namespace, string(mount.Claim)), store.VolumeRequestKey(owner, mount.Claim))
		}
	}
	for _, volume := range a.Volumes {
		if v.ModRev(store.VolumeKey(volume.ID, volume.Claim)) != 0 {
			return fmt.Errorf("start %s: its volume of the claim %s has a record already", m.ID, volume.Claim)
		}
		d.put(store.VolumeKey(volume.ID, volume.Claim), volume)
	}
	for _, rec := range a.Claimed {
		d.putSeen(v, store.IdentityKey(rec.ID), rec)
	}
	for _, volume := range a.Moved { // which is guarded: the life uses it
		d.put(store.VolumeKey(volume.ID, volume.Claim), volume)
	}
	if err := d.claimAddress(v, a); err != nil {
		return err
	}
	d.noSession(v, a.Lost)
	d.noUnknownLives(v)
	d.add(store.PutRecord(store.MemberKey(m.ID), m))
	d.removeIfThere(v, store.RequestKey(m.ID))
	d.add(store.PutRecord(store.IdentityKey(m.ID), a.Identity))
	d.dropIfThere(v, store.ReportKey(m.ID))
	return nil
}

// noUnknownLives compares that since v no node has joined or reported lives that the store does not
// know: what is started, given up or freed must not be one of theirs.
func (d *decision) noUnknownLives(v cache.View) { d.seen(v, store.HellosKey) }

// noSession compares a proof by deadline: that the node has no session, and had none since, for each
// session starts by writing the node's facts. "": there is another proof.
func (d *decision) noSession(v cache.View, node spec.NodeName) {
	if node == "" {
		return
	}
	d.absent(store.SessionKey(node))
	d.seen(v, store.FactsKey(node))
}

// claimAddress claims a new address, or checks that a kept one is still the identity's. A life in the network of its
// node has the node's, of which the facts that start compares tell.
func (d *decision) claimAddress(v cache.View, a plan.Start) error {
	ip := a.Member.Address
	if a.Member.HostNetwork {
		return nil
	}
	held := v.Addresses()[ip.String()]
	free := held == nil || held.FreedAt != nil
	if free && !a.NewAddress || !free && held.ID != a.Member.ID {
		return fmt.Errorf("start %s: the store has its address %s as another's (record %+v)", a.Member.ID, ip, held)
	}
	d.seen(v, store.AddressKey(ip))
	if a.NewAddress {
		d.add(store.PutRecord(store.AddressKey(ip), records.AddressRecord{Address: ip, ID: a.Member.ID}))
	}
	return nil
}

func (d *decision) stop(v cache.View, a plan.Stop) error {
	m := v.Member(a.ID)
	if m == nil || m.Token != a.Token {
		return fmt.Errorf("stop %s: its token is not %s", a.ID, a.Token)
	}
	d.seen(v, store.MemberKey(a.ID))
	if a.Reason == records.ReasonScaleDown && m.Leaving() { // its report says that it has taken leave, or it is not asked any more
		d.seen(v, store.ReportKey(a.ID))
	}
	switch a.Reason { // that it is wanted still
	case records.ReasonDrain:
		d.seen(v, store.NodeKey(m.Node))
	case records.ReasonNodeShutdown:
		d.seen(v, store.FactsKey(m.Node))
	}
	for _, volume := range a.Volumes {
		d.putSeen(v, store.VolumeKey(volume.ID, volume.Claim), volume)
	}
	d.add(store.PutRecord(store.MemberKey(a.ID), a.Record(*m)))
	d.removeIfThere(v, store.RequestKey(a.ID)) // which was about the life that ends
	return d.stopForMove(v, a.Move)
}

// forget removes what is proven over. The proof is read once more: a report of
// this very token that says so, or that its node has no session.
func (d *decision) forget(v cache.View, a plan.Forget, now time.Time) error {
	m := v.Member(a.ID)
	r := v.Report(a.ID)
	id := v.Identity(a.ID)
	if m == nil || m.Token != a.Token || !proof.Ended(m, r) && m.Node != a.Lost {
		return fmt.Errorf("forget %s: nothing proves that token %s is over", a.ID, a.Token)
	}
	d.seen(v, store.IdentityKey(a.ID), store.MemberKey(a.ID), store.ReportKey(a.ID))
	d.remove(store.MemberKey(a.ID))
	d.dropIfThere(v, store.ReportKey(a.ID))
	d.noSession(v, a.Lost)
	d.removeIfThere(v, store.RequestKey(a.ID))
	if id == nil {
		return nil
	}
	set := v.Set(a.ID.Ref())
	a.FreeAddress = a.FreeAddress && (!id.Address.IsValid() || d.freeAddress(v, id, now))
	d.add(store.PutRecord(store.IdentityKey(a.ID), a.Record(*id, set)))
	return nil
}

// freeAddress puts the identity's address into quarantine; false: the address is not (only) its own,
// and stays as it is.
func (d *decision) freeAddress(v cache.View, id *records.IdentityRecord, now time.Time) bool {
	ip := id.Address
	if held := v.Addresses()[ip.String()]; held == nil || held.ID != id.ID || held.FreedAt != nil {
		return false
	}
	freed := asStored(now)
	d.noUnknownLives(v)
	d.freed = &records.AddressRecord{Address: ip, ID: id.ID, FreedAt: &freed}
	d.putSeen(v, store.AddressKey(ip), *d.freed)
	return true
}

// removeSet removes a set's record with all that is of no use without it; a set
// with very many revisions loses those first. Volumes and identities stay.
func (d *decision) removeSet(v cache.View, ref spec.SetRef) {
	revisions := v.World(ref).Revisions
	for _, r := range revisions[:min(len(revisions), maxRevisions)] {
		d.remove(store.RevisionKey(ref, r.Hash))
	}
	if len(revisions) > maxRevisions {
		return
	}
	set := v.Set(ref)
	d.dropIfThere(v, store.StatusKey(ref))
	keepsJobs := false
	if v.Bootstrapped(set.UID) { // a uid is never used again
		d.remove(store.BootstrappedKey(set.UID))
		if slices.ContainsFunc(v.Volumes(ref), plan.Kept) {
			d.put(store.WasBootstrappedKey(ref), records.Bootstrapped{SetUID: set.UID})
			keepsJobs = true
		}
	}
	if !keepsJobs {
		d.dropIfThere(v, store.JobsKey(ref))
	}
	d.closeHistory(v, ref)
	d.remove(store.SetKey(ref))
}
