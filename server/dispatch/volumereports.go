package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// orders is what a node shall do with volumes of its: as the fates of those say that are
// being given up, lost or brought back, give up what it was left with, and forget those in its trash that no record names any more.
func orders(v cache.View, node spec.NodeName) map[records.VolumeID]records.VolumeOrder {
	said, mine := v.VolumeReportsOn(node), v.VolumesOn(node)
	if len(said)+len(mine) == 0 {
		return nil
	}
	out := map[records.VolumeID]records.VolumeOrder{}
	for _, r := range said {
		now := v.Volume(r.ID, r.Claim)
		if now != nil && now.UID == r.Volume || now == nil && v.ModRev(store.VolumeKey(r.ID, r.Claim)) != 0 {
			continue
		}
		o := records.VolumeOrder{
			ID: r.ID, Claim: r.Claim, Volume: r.Volume, Number: r.Number, Class: r.Class, Turn: r.Turn, Fate: records.FateGone,
		}
		if r.State == records.VolumeLeft {
			if plan.KeepsCopy(cache.MoveOf(v, r.ID), r) {
				continue
			}
			o.Fate, o.SizeBytes, o.Trash, o.Unused = records.FateReclaiming, r.SizeBytes, r.Left, true
		}
		out[r.Volume] = o
	}
	for _, vol := range mine {
		id := v.Identity(vol.ID)
		out[vol.UID] = records.VolumeOrder{
			ID: vol.ID, Claim: vol.Claim, Volume: vol.UID, Number: vol.Number, Class: vol.Class,
			Turn: vol.Turn, SizeBytes: vol.SizeBytes, Fate: vol.Fate, Trash: scalar.Duration{Duration: vol.Trash()},
			Unused: id == nil || id.VolumeReady[vol.Claim] < vol.Number,
		}
	}
	return out
}

// nextOrders returns the orders that differ from what was sent, by volume, and takes
// them as sent.
func (s *sentState) nextOrders(v cache.View, at machine) (out []records.VolumeOrder) {
	now := orders(v, at.node)
	if len(now) == 0 {
		s.orders = nil
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if s.orders[id] != now[id] {
			out = append(out, now[id])
		}
	}
	s.orders = now
	return out
}

// pendingVolumeReports is what a node says of volumes, until it is stored.
type pendingVolumeReports struct {
	full    bool // it named all that its trash holds
	reports map[records.VolumeID]records.VolumeReport
}

// receiveVolumeReports takes what the node says of volumes. It does not block.
func (se *session) receiveVolumeReports(m *proto.VolumeReports) {
	docs := slices.DeleteFunc(m.GetReportsJson(), func(d []byte) bool { return len(d) > reportBytes })
	if n := len(m.GetReportsJson()) - len(docs); n > 0 {
		se.server.refusals.add(se.node, LimitReports, n, fmt.Sprintf("a volume report has more than %d bytes", reportBytes))
	}
	reports, err := wire.ToDocuments[records.VolumeReport](docs)
	if err != nil {
		se.abort(codes.InvalidArgument, err.Error())
		return
	}
	se.mu.Lock()
	defer se.mu.Unlock()
	if m.GetFull() {
		se.volumeReports = pendingVolumeReports{full: true}
	}
	if se.volumeReports.reports == nil {
		se.volumeReports.reports = map[records.VolumeID]records.VolumeReport{}
	}
	for _, r := range reports {
		if !wellFormed(r) {
			se.abort(codes.InvalidArgument, "a report has an invalid volume identity")
			return
		}
		if _, there := se.volumeReports.reports[r.Volume]; !there && len(se.volumeReports.reports) >= maxVolumeReports {
			se.server.refusals.add(se.node, LimitReports, 1, fmt.Sprintf("it reports more than %d volumes at once", maxVolumeReports))
			continue
		}
		r.Node, r.Cause, r.Message = se.node, truncate(r.Cause, causeBytes), truncate(r.Message, volumeTextBytes)
		se.volumeReports.reports[r.Volume] = r
	}
	se.changed = true
	se.out.filled.Notify()
}

// wellFormed: what it names can be a key.
func wellFormed(r records.VolumeReport) bool {
	if name, is := r.ID.Ref().ClaimName(); is {
		return scalar.ValidLabel(string(r.ID.Namespace)) && scalar.ValidSubdomain(name) && r.ID.Ordinal == 0 &&
			string(r.Claim) == name && scalar.ValidLabel(string(r.Volume))
	}
	return canBeMember(r.ID) && scalar.ValidLabel(string(r.Claim)) && scalar.ValidLabel(string(r.Volume))
}

// storeVolumeReports stores what the node said of volumes that are its own, guarded by the session;
// what was erased is forgotten. again: the store could not take it now, or it changed.
func (se *session) storeVolumeReports() (again bool, err error) {
	behind := false // the cache does not show what was stored last: what was said then would count as unknown
	se.server.cfg.Cache.Look(func(v cache.View) { behind = v.Rev() < se.volumesRev })
	se.mu.Lock()
	pending := se.volumeReports
	may := !behind && se.server.writes.mayWrite(se.node)
	if may {
		se.volumeReports = pendingVolumeReports{}
	}
	se.mu.Unlock()
	switch {
	case !pending.full && len(pending.reports) == 0:
		return false, nil
	case behind:
		return true, nil
	case !may:
		se.server.refusals.add(se.node, LimitRate, 1, "it reports more of volumes than the store can keep; the newest is stored later")
		return true, nil
	}
	var units []store.Txn
	var foreign []string
	se.server.cfg.Cache.Look(func(v cache.View) { units, foreign = pending.transactions(v, se.node) })
	if len(foreign) > 0 {
		se.server.refusals.add(se.node, LimitOwner, len(foreign), foreign[0])
	}
	ctx, cancel := context.WithTimeout(se.ctx, storeTime)
	defer cancel()
	shared := []store.Compare{store.Seen(store.SessionKey(se.node), se.rev)}
	for i, o := range store.CommitAll(ctx, se.server.cfg.Store, shared, units) {
		se.server.writes.charge(se.node, len(units[i].Then[0].Key)+len(units[i].Then[0].Value))
		again = again || o.Err != nil
		se.volumesRev = max(se.volumesRev, o.Rev)
		if errors.Is(o.Err, store.ErrConflict) && !se.isCurrent(ctx) {
			return false, errSessionOver
		}
	}
	if again {
		se.requeueVolumeReports(pending)
	}
	return again, nil
}

// isCurrent reads whether the session is still the store's; an unknown answer is yes.
func (se *session) isCurrent(ctx context.Context) bool {
	key := store.SessionKey(se.node)
	_, kvs, err := se.server.cfg.Store.Get(ctx, key)
	return err != nil || se.owns(kvs[key])
}

// transactions are the writes of what was pending, each guarded by what the store knows of the
// volume; foreign says what was not the node's to say.
func (s pendingVolumeReports) transactions(v cache.View, node spec.NodeName) (units []store.Txn, foreign []string) {
	own := newVolumeOwner(v, node)
	write := func(r *records.VolumeReport, op store.Op) {
		units = append(units, store.Txn{If: []store.Compare{
			v.Seen(store.VolumeKey(r.ID, r.Claim)),
			v.Seen(op.Key),
		}, Then: []store.Op{op}})
	}
	key := func(r *records.VolumeReport) string { return store.VolumeReportKey(r.ID, r.Claim, r.Volume) }
	if s.full {
		for _, old := range v.VolumeReportsOn(node) {
			// What no record names stays until the node has looked and says Erased: that it
			// is this node's is known by nothing else.
			_, there := s.reports[old.Volume]
			if now := v.Volume(old.ID, old.Claim); !there && now != nil && now.UID == old.Volume {
				write(old, store.Del(key(old)))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.reports)) {
		r, verdict, why := own.judge(s.reports[id])
		switch {
		case verdict == stale:
			foreign = append(foreign, why)
		case verdict == known:
		case r.State == records.VolumeErased:
			write(&r, store.Del(key(&r)))
		default:
			write(&r, store.Put(key(&r), store.Encode(r)))
		}
	}
	return units, foreign
}

// requeueVolumeReports keeps what could not be stored, unless the node said something newer.
func (se *session) requeueVolumeReports(old pendingVolumeReports) {
	se.mu.Lock()
	defer se.mu.Unlock()
	if se.volumeReports.full {
		return
	}
	newer := se.volumeReports.reports
	se.volumeReports = old
	if se.volumeReports.reports == nil {
		se.volumeReports.reports = map[records.VolumeID]records.VolumeReport{}
	}
	maps.Copy(se.volumeReports.reports, newer)
}
