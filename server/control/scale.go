package control

import (
	"context"
	"math"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// edits of one set that collide with another's are tried again so often.
const attempts = 5

// Scale implements proto.ControlServer.
func (s *Server) Scale(ctx context.Context, r *proto.ScaleRequest) (*proto.ScaleResponse, error) {
	if n := r.GetReplicas(); n < 0 || n > spec.MaxReplicas {
		return nil, invalid("replicas must be 0 to %d (got %d)", spec.MaxReplicas, n)
	}
	ref := spec.SetRef{Namespace: namespace(r.GetNamespace()), Name: spec.SetName(r.GetName())}
	out := &proto.ScaleResponse{After: r.GetReplicas()}
	err := s.editSet(ctx, ref, func(set *records.Set) (bool, error) {
		if err := editable(set); err != nil {
			return false, err
		}
		if set.Spec.Ordinals.Range(int(r.GetReplicas())).End > math.MaxInt32 {
			return false, invalid("%d replicas from ordinal %d on exceed the largest ordinal", r.GetReplicas(), set.Start())
		}
		now := set.Replicas()
		if r.CurrentReplicas != nil && int(r.GetCurrentReplicas()) != now {
			return false, precondition(
				"set %s has %d members, not %d; nothing was changed", ref, now, r.GetCurrentReplicas())
		}
		out.Before, out.Effects = int32(now), nil
		if now == int(r.GetReplicas()) {
			return false, nil
		}
		old := spec.Clone(*set)
		replicas := r.GetReplicas()
		set.Spec.Replicas = &replicas
		settleInitial(set)
		set.Generation++
		edited(ctx, set, &old, "scale")
		out.Effects = describe(&old, s.forecast(set))
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// editSet reads a set, lets change alter it and writes it, guarded by what was
// read; when somebody else was faster it looks again. change tells whether there
// is anything to write.
func (s *Server) editSet(ctx context.Context, ref spec.SetRef, change func(*records.Set) (bool, error)) error {
	return editRecord(ctx, s, store.SetKey(ref), "set "+ref.String(), notFound(kindSet, ref.Namespace, string(ref.Name)), change)
}

// editRecord is editSet for any record; gone is the error when there is none.
func editRecord[T any](ctx context.Context, s *Server, key, name string, gone error, change func(*T) (bool, error)) error {
	for range attempts {
		_, kvs, err := s.cfg.Store.Get(ctx, key)
		if err != nil {
			return err
		}
		record, err := before[T](kvs[key])
		if err != nil {
			return err
		}
		if record == nil {
			return gone
		}
		write, err := change(record)
		if err != nil || !write {
			return err
		}
		err = s.commit(ctx, name, store.Txn{
			If:   []store.Compare{store.Seen(key, kvs[key].Mod)},
			Then: []store.Op{store.Put(key, store.Encode(record))},
		})
		if !isConflict(err) {
			return err
		}
	}
	return writeError(name, store.ErrConflict)
}
