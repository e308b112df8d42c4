package control

import (
	"context"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Get implements proto.ControlServer.
func (s queries) Get(ctx context.Context, r *proto.GetRequest) (*proto.Object, error) {
	if r.GetName() == "" {
		return nil, invalid("name the object to get")
	}
	q := query{kind: r.GetKind(), ns: namespace(r.GetNamespace()), name: r.GetName()}
	s.freshen(ctx, q)
	items, err := s.read(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, notFound(q.kind, q.ns, q.name)
	}
	return items[0].wire()
}

// List implements proto.ControlServer.
func (s queries) List(ctx context.Context, r *proto.ListRequest) (*proto.ListResponse, error) {
	q, err := listQuery(r)
	if err != nil {
		return nil, err
	}
	s.freshen(ctx, q)
	items, err := s.read(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &proto.ListResponse{}
	for _, i := range items {
		o, err := i.wire()
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, o)
	}
	return out, nil
}

func listQuery(r *proto.ListRequest) (query, error) {
	q := query{kind: r.GetKind(), ns: namespace(r.GetNamespace()), set: spec.SetName(r.GetSet())}
	if r.GetAllNamespaces() {
		q.ns = ""
	}
	if r.GetSelector() != "" {
		sel, err := spec.ParseSelector(r.GetSelector())
		if err != nil {
			return q, invalid("selector: %v", err)
		}
		q.selector = sel
	}
	return q, nil
}

// read returns what q chooses. Sets, members and nodes are read from the world;
// the rest, which is read seldom and outlives its set, from the store.
func (s queries) read(ctx context.Context, q query) ([]item, error) {
	var items []item
	var err error
	switch q.kind {
	case proto.KindSet, proto.KindMember, proto.KindNode, proto.KindQuota:
		rows := s.rows(q)
		s.cfg.Cache.Look(func(v cache.View) { items = s.fromWorld(v, q, rows) })
	case proto.KindVolume:
		items, err = s.fromVolumes(ctx, q)
	case proto.KindEndpoints:
		items, err = s.fromEndpoints(ctx, q)
	default:
		items, err = s.fromStore(ctx, q)
	}
	return q.choose(items), err
}

// rows are the members' lines of sets too large to store them with their status, as
// the planner makes them. They are made for members, and for a set that is asked for
// by its name.
func (s queries) rows(q query) map[spec.SetRef][]records.MemberStatus {
	if q.kind != proto.KindMember && (q.kind != proto.KindSet || q.name == "" && q.set == "") {
		return nil
	}
	var large []spec.SetRef
	s.cfg.Cache.Look(func(v cache.View) {
		for _, ref := range v.Sets() {
			if st := v.Status(ref); q.mayHold(ref) && (st == nil || len(st.Members) == 0) {
				large = append(large, ref)
			}
		}
	})
	rows := map[spec.SetRef][]records.MemberStatus{}
	for _, ref := range large {
		if p, ok := s.cfg.Planner.Explain(ref); ok {
			rows[ref] = p.Status.Members
		}
	}
	return rows
}

func (s queries) fromWorld(v cache.View, q query, rows map[spec.SetRef][]records.MemberStatus) (items []item) {
	if q.kind == proto.KindNode {
		for _, n := range cache.NodeStates(v, s.cfg.Planner.Nodes(v)) {
			items = append(items, showNode(n))
		}
		return items
	}
	if q.kind == proto.KindQuota {
		return showQuotas(v, q.ns)
	}
	for _, ref := range v.Sets() {
		if !q.mayHold(ref) {
			continue
		}
		st := v.Status(ref)
		st = withRows(st, rows[ref])
		if q.kind == proto.KindMember {
			items = append(items, showMembers(v, ref, st)...)
			continue
		}
		set := v.Set(ref)
		items = append(items, showSet(set, st, movesOf(v, ref)))
	}
	return items
}

// withRows is a status with the rows given, if there are any.
func withRows(st *records.SetStatus, rows []records.MemberStatus) *records.SetStatus {
	if len(rows) == 0 {
		return st
	}
	var with records.SetStatus
	if st != nil {
		with = *st
	}
	with.Members = rows
	return &with
}

// storedKinds are those that are shown as they are stored: the kind of their keys, and how one
// is shown.
var storedKinds = map[string]struct {
	keys string
	show func(store.KV, *seal.Key) (item, error)
}{
	proto.KindService:       {store.KindService, showing(showService)},
	proto.KindEndpoints:     {store.KindEndpoints, showing(showEndpoints)},
	proto.KindSlice:         {store.KindSlice, showing(showSlice)},
	proto.KindBudget:        {store.KindBudget, showing(showBudget)},
	proto.KindNetworkPolicy: {store.KindNetworkPolicy, showing(showNetworkPolicy)},
	proto.KindConfigMap:     {store.KindConfig, showing(showConfig)},
	proto.KindRevision:      {store.KindRevision, showing(showRevision)},
	proto.KindSecret: {store.KindSecret, func(kv store.KV, key *seal.Key) (item, error) {
		return showing(func(r records.SecretRecord) item { return showSecret(r, key) })(kv, key)
	}},
	proto.KindEvent: {store.KindEvent, func(kv store.KV, key *seal.Key) (item, error) {
		name := kv.Key[strings.LastIndexByte(kv.Key, '/')+1:]
		return showing(func(e records.Event) item { return showEvent(e, name) })(kv, key)
	}},
}

// showing decodes a record and shows it.
func showing[T any](show func(T) item) func(store.KV, *seal.Key) (item, error) {
	return func(kv store.KV, _ *seal.Key) (item, error) {
		record, err := store.Decode[T](kv)
		if err != nil {
			return item{}, err
		}
		return show(record), nil
	}
}

// fromStore reads one of storedKinds. A record that cannot be read is left out; the server's
// log has named it.
func (s queries) fromStore(ctx context.Context, q query) (items []item, err error) {
	kind, known := storedKinds[q.kind]
	if !known {
		return nil, invalid("there is no kind %q", q.kind)
	}
	kvs, err := s.snapshot(ctx, kind.keys, q.ns)
	for _, kv := range kvs {
		if i, err := kind.show(kv, s.cfg.Key); err == nil {
			items = append(items, i)
		}
	}
	return items, err
}

// snapshot reads all records of a kind in a namespace; "": in all.
func (s *shared) snapshot(ctx context.Context, kind string, ns spec.Namespace) ([]store.KV, error) {
	prefix := kind + "/"
	if ns != "" {
		prefix += string(ns) + "/"
	}
	_, kvs, err := s.cfg.Store.Snapshot(ctx, prefix)
	return kvs, err
}
