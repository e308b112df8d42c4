package control

import (
	"context"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Get implements proto.ControlServer.
func (s *Server) Get(ctx context.Context, r *proto.GetRequest) (*proto.Object, error) {
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
func (s *Server) List(ctx context.Context, r *proto.ListRequest) (*proto.ListResponse, error) {
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
func (s *Server) read(ctx context.Context, q query) ([]item, error) {
	var items []item
	switch q.kind {
	case kindSet, kindMember, kindNode:
		rows := s.rows(q)
		s.cfg.Cache.Look(func(v cache.View) { items = s.fromWorld(v, q, rows) })
	case kindVolume:
		var err error
		if items, err = s.volumes(ctx, q); err != nil {
			return nil, err
		}
	default:
		var err error
		if items, err = s.fromStore(ctx, q); err != nil {
			return nil, err
		}
	}
	return q.choose(items), nil
}

// rows are the members' lines of sets too large to store them with their status, as
// the planner makes them. They are made for members, and for a set that is asked for
// by its name.
func (s *Server) rows(q query) map[spec.SetRef][]records.MemberStatus {
	if q.kind != kindMember && (q.kind != kindSet || q.name == "" && q.set == "") {
		return nil
	}
	var large []spec.SetRef
	s.cfg.Cache.Look(func(v cache.View) {
		for _, ref := range v.Sets() {
			if st, _ := v.Status(ref); q.mayHold(ref) && (st == nil || len(st.Members) == 0) {
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

func (s *Server) fromWorld(v cache.View, q query, rows map[spec.SetRef][]records.MemberStatus) (items []item) {
	if q.kind == kindNode {
		for _, n := range cache.NodeStates(v, s.cfg.Planner.Nodes(v)) {
			items = append(items, showNode(n))
		}
		return items
	}
	for _, ref := range v.Sets() {
		if !q.mayHold(ref) {
			continue
		}
		st, _ := v.Status(ref)
		st = withRows(st, rows[ref])
		if q.kind == kindMember {
			items = append(items, showMembers(v, ref, st)...)
			continue
		}
		set, _ := v.Set(ref)
		items = append(items, showSet(set, st))
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

// fromStore reads a kind that is shown as it is stored. A record that cannot be
// read is left out; the server's log has named it.
func (s *Server) fromStore(ctx context.Context, q query) ([]item, error) {
	stored := map[string]string{
		kindService: store.KindService, kindConfigMap: store.KindConfig,
		kindSecret: store.KindSecret, kindBudget: store.KindBudget, kindEvent: store.KindEvent, kindRevision: store.KindRevision,
	}[q.kind]
	if stored == "" {
		return nil, invalid("there is no kind %q", q.kind)
	}
	prefix := stored + "/"
	if q.ns != "" {
		prefix += string(q.ns) + "/"
	}
	_, kvs, err := s.cfg.Store.Snapshot(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var items []item
	for _, kv := range kvs {
		if i, err := s.show(q.kind, kv); err == nil {
			items = append(items, i)
		}
	}
	return items, nil
}

func (s *Server) show(kind string, kv store.KV) (item, error) {
	switch kind {
	case kindService:
		return shown(kv, showService)
	case kindBudget:
		return shown(kv, showBudget)
	case kindConfigMap:
		return shown(kv, showConfig)
	case kindSecret:
		return shown(kv, func(r records.SecretRecord) item { return showSecret(r, s.cfg.Key) })
	case kindEvent:
		name := kv.Key[strings.LastIndexByte(kv.Key, '/')+1:]
		return shown(kv, func(e records.Event) item { return showEvent(e, name) })
	}
	return shown(kv, showRevision)
}

func shown[T any](kv store.KV, show func(T) item) (item, error) {
	record, err := store.Decode[T](kv)
	if err != nil {
		return item{}, err
	}
	return show(record), nil
}
