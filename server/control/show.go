package control

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/server/tally"
	"github.com/stead-project/stead/spec"
)

// steadVersion is the apiVersion of what Kubernetes does not have.
const steadVersion = "stead/v1"

func showSet(s *records.Set, st *records.SetStatus, moving []moves.ShownMove) item {
	m := manifest.OfSet(s)
	o := object{
		APIVersion: m.APIVersion, Kind: m.Kind,
		Metadata: records.ShownMeta{
			Name: m.Metadata.Name, Namespace: m.Metadata.Namespace, Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations,
			UID: string(s.UID), Generation: s.Generation, CreationTimestamp: s.CreatedAt,
		},
		Spec: m.Spec,
	}
	if st == nil {
		st = &records.SetStatus{}
	}
	o.Status = records.ShownSet{SetStatus: *st, Paused: s.Paused, Deleting: s.Deleting, Orphaned: s.Orphaned, Edits: s.Edits, Moves: moving}
	return item{kind: proto.KindSet, set: s.Ref.Name, body: o}
}

// movesOf are the moves of a set's members, asked for or under way.
func movesOf(v cache.View, ref spec.SetRef) (list []moves.ShownMove) {
	for _, slot := range cache.MovingOf(v, ref) {
		if move := plan.ShownMove(&slot, v.Nodes(), v.Epoch()); move != nil {
			list = append(list, *move)
		}
	}
	return list
}

// showMembers shows every member that lives or is waited for; st has their rows.
func showMembers(v cache.View, ref spec.SetRef, st *records.SetStatus) []item {
	w := v.World(ref)
	rows := map[int]records.MemberStatus{}
	if st != nil {
		for _, row := range st.Members {
			rows[row.Ordinal] = row
		}
	}
	live := liveNodes(w.Nodes)
	moving := map[int]*moves.ShownMove{}
	leader := plan.Leader(w.Slots, proof.NewJudge(w.Nodes, w.Epoch))
	var out []item
	for _, slot := range w.Slots {
		move := plan.ShownMove(&slot, w.Nodes, w.Epoch)
		moving[slot.ID.Ordinal] = move
		if slot.Member != nil {
			shown := showMember(slot, rows[slot.ID.Ordinal], w.Set, live, move)
			if slot.ID.Ordinal == leader {
				shown.body = asLeader(shown.body)
			}
			out = append(out, shown)
			delete(rows, slot.ID.Ordinal)
		}
	}
	for ordinal, row := range rows { // none of them lives: they wait
		id := spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: ordinal}
		row.Phase, row.Ready, row.Token = "", false, ""
		out = append(out, item{kind: proto.KindMember, set: ref.Name, body: object{
			APIVersion: steadVersion, Kind: "Member", Status: records.ShownMember{MemberStatus: row, Move: moving[ordinal]},
			Metadata: records.ShownMeta{Name: id.MemberName(), Namespace: ref.Namespace, Labels: memberLabels(id, w.Set, "")},
		}})
	}
	return out
}

func showMember(slot plan.Slot, row records.MemberStatus, set *records.Set, live map[spec.NodeName]*records.Session, move *moves.ShownMove) item {
	m := slot.Member
	row.Name, row.Ordinal = m.ID.MemberName(), m.ID.Ordinal
	row.Node, row.Address, row.Revision = m.Node, m.Address, m.Revision
	row.Token, row.Goal, row.BeganAt = m.Token.String(), m.Goal, m.BeganAt
	row.Phase, row.Ready, row.Restarts, row.Cause, row.Message = records.PhaseAssigned, false, 0, "", ""
	if r := slot.Report; r != nil {
		s := live[m.Node]
		row.Phase, row.Cause, row.Message = r.Phase, r.Cause, r.Message
		row.Ready = r.Ready && m.Goal == records.GoalRun && !r.Phase.Over() && s != nil && s.Boot == m.Boot && s.UID == m.NodeUID && s.ID == r.Session
		for _, c := range r.Containers {
			row.Restarts += c.Restarts
		}
	}
	return item{kind: proto.KindMember, set: m.ID.Set, body: object{
		APIVersion: steadVersion, Kind: "Member", Spec: m, Status: records.ShownMember{MemberStatus: row, Report: slot.Report, Move: move},
		Metadata: records.ShownMeta{
			Name: m.ID.MemberName(), Namespace: m.ID.Namespace, UID: m.Token.String(),
			CreationTimestamp: m.BeganAt, Labels: memberLabels(m.ID, set, m.Revision),
		},
	}}
}

// asLeader is a shown member as the one that leads: its status and its labels say so.
func asLeader(o object) object {
	st := o.Status.(records.ShownMember)
	st.Role = records.RoleLeader
	o.Status, o.Metadata.Labels = st, maps.Clone(o.Metadata.Labels)
	o.Metadata.Labels[records.LabelRole] = records.RoleLeader
	return o
}

// memberLabels are the template's and those that Kubernetes' controller sets.
func memberLabels(id spec.Identity, set *records.Set, revision spec.RevisionHash) map[string]string {
	var labels map[string]string
	if set != nil {
		labels = set.Spec.Template.Metadata.Labels
	}
	return spec.MemberLabels(id, revision, labels)
}

func liveNodes(nodes []plan.Node) map[spec.NodeName]*records.Session {
	live := map[spec.NodeName]*records.Session{}
	for _, n := range nodes {
		if n.Session != nil {
			live[n.Session.Node] = n.Session
		}
	}
	return live
}

func showNode(s cache.NodeState) item {
	n := s.Node
	return item{kind: proto.KindNode, body: object{
		APIVersion: steadVersion, Kind: "Node", Spec: n.Node,
		Status: records.ShownNode{
			NodeFacts: n.Facts, State: s.State, SilentSeconds: int64(n.Gone.Seconds()), Waits: s.Waits, Session: n.Session,
			Lives: n.Lives, AskedCPUMillis: n.CPUMillis, AskedMemoryBytes: n.MemoryBytes,
		},
		Metadata: records.ShownMeta{Name: string(n.Node.Name), UID: string(n.Node.UID), Labels: n.Labels},
	}}
}

func showRevision(r records.Revision) item {
	return item{kind: proto.KindRevision, set: r.Ref.Name, body: object{
		APIVersion: steadVersion, Kind: "Revision", Spec: r,
		Metadata: records.ShownMeta{Name: string(r.Ref.Name) + "-" + string(r.Hash), Namespace: r.Ref.Namespace, CreationTimestamp: r.CreatedAt},
	}}
}

// showEvent names an event by its set as well, so that its name is its own in the namespace, as in Kubernetes.
func showEvent(e records.Event, name string) item {
	return item{kind: proto.KindEvent, set: e.Ref.Name, body: object{
		APIVersion: steadVersion, Kind: "Event", Spec: e,
		Metadata: records.ShownMeta{Name: string(e.Ref.Name) + "." + name, Namespace: e.Ref.Namespace, CreationTimestamp: e.At},
	}}
}

// showMeta is the metadata of an object that users apply, but for sets.
func showMeta(m records.Meta) records.ShownMeta {
	return records.ShownMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations, Generation: m.Generation}
}

func showService(r records.ServiceRecord) item {
	m := manifest.OfService(&r)
	o := object{APIVersion: m.APIVersion, Kind: m.Kind, Spec: m.Spec, Metadata: showMeta(r.Meta)}
	if r.LoadBalancer.IsValid() {
		o.Status = records.ShownService{LoadBalancer: records.ShownBalancer{Ingress: []records.ShownIngress{{IP: r.LoadBalancer, IPMode: "VIP"}}}}
	}
	return item{kind: proto.KindService, body: o}
}

func showBudget(r records.BudgetRecord) item {
	m := manifest.OfBudget(&r)
	return item{kind: proto.KindBudget, body: object{APIVersion: m.APIVersion, Kind: m.Kind, Spec: m.Spec, Metadata: showMeta(r.Meta)}}
}

func showNetworkPolicy(r records.NetworkPolicyRecord) item {
	m := manifest.OfNetworkPolicy(&r)
	return item{kind: proto.KindNetworkPolicy, body: object{APIVersion: m.APIVersion, Kind: m.Kind, Spec: m.Spec, Metadata: showMeta(r.Meta)}}
}

// showQuotas are those of a namespace ("": of all), with what is used of each.
func showQuotas(v cache.View, only spec.Namespace) (items []item) {
	for _, ns := range cache.QuotaNamespaces(v) {
		if only != "" && ns != only {
			continue
		}
		held := cache.HeldIn(v, ns)
		used := held.Totals()
		quotas, _ := cache.Quotas(v, ns)
		for _, q := range quotas {
			m := manifest.OfQuota(q)
			items = append(items, item{kind: proto.KindQuota, body: object{APIVersion: m.APIVersion, Kind: m.Kind, Spec: m.Spec,
				Metadata: showMeta(q.Meta), Status: tally.Status(q, used)}})
		}
	}
	return items
}

func showConfig(c records.ConfigRecord) item {
	m, keys := manifest.OfConfigMap(&c), []records.ShownFile{}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		keys = append(keys, records.ShownFile{Name: name, SizeBytes: len(c.Files[name])})
	}
	o := object{APIVersion: m.APIVersion, Kind: m.Kind, Immutable: c.Immutable, Status: records.ShownFiles{Keys: keys}, Metadata: showMeta(c.Meta)}
	if m.Data != nil {
		o.Data = m.Data
	}
	if m.BinaryData != nil {
		o.BinaryData = m.BinaryData
	}
	return item{kind: proto.KindConfigMap, body: o}
}

// showSecret tells names and sizes of the files, never their content.
func showSecret(s records.SecretRecord, key *seal.Key) item {
	files, err := key.Open(&s)
	keys := []records.ShownFile{}
	for _, name := range s.Keys {
		size := -1
		if content, ok := files[name]; ok && err == nil {
			size = len(content)
		}
		keys = append(keys, records.ShownFile{Name: name, SizeBytes: size})
	}
	return item{kind: proto.KindSecret, body: object{
		APIVersion: "v1", Kind: "Secret", Type: s.Type, Immutable: s.Immutable, Status: records.ShownFiles{Keys: keys}, Metadata: showMeta(s.Meta),
	}}
}
