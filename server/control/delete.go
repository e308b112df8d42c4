package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Delete implements proto.ControlServer. A set is marked; the engine stops its
// members and removes the record last. Other objects are removed at once.
func (s objects) Delete(ctx context.Context, r *proto.DeleteRequest) (*proto.DeleteResponse, error) {
	ns, name := namespace(r.GetNamespace()), r.GetName()
	if err := proto.CheckCascade(r.GetCascade(), r.GetKind()); err != nil {
		return nil, invalid("cascade: %v", err)
	}
	var effects []string
	switch r.GetKind() {
	case proto.KindSet:
		ref := spec.SetRef{Namespace: ns, Name: spec.SetName(name)}
		if r.GetCascade() == proto.CascadeOrphan {
			return s.orphanSet(ctx, ref)
		}
		return s.deleteSet(ctx, ref)
	case proto.KindClaim:
		return s.deleteClaim(ctx, ns, name)
	case proto.KindService:
		effects = s.servedBy(ns, name, nil)
	case proto.KindEndpoints, proto.KindSlice:
	case proto.KindQuota:
		if err := mayBound(ctx, string(ns)+"/"+name); err != nil {
			return nil, err
		}
	case proto.KindBudget:
		effects = s.boundBy(ns, name, nil)
	case proto.KindNetworkPolicy:
		effects = s.isolatedBy(ns, name, nil)
	case proto.KindConfigMap:
		effects = s.namedBy(dispatch.FileRef{Kind: dispatch.KindConfigMap, Namespace: ns, Name: name}, nil)
	case proto.KindSecret:
		effects = s.namedBy(dispatch.FileRef{Kind: dispatch.KindSecret, Namespace: ns, Name: name}, nil)
	default:
		return nil, invalid(
			"a %s cannot be deleted; sets, services, endpoints, endpointslices, configmaps, secrets, budgets, networkpolicies, quotas and claims can", r.GetKind())
	}
	return s.remove(ctx, r.GetKind(), ns, name, effects)
}

func (s objects) deleteSet(ctx context.Context, ref spec.SetRef) (*proto.DeleteResponse, error) {
	out := &proto.DeleteResponse{}
	err := s.editSet(ctx, ref, func(now *records.Set) (bool, error) {
		was := now.Deleting
		now.Deleting, now.Orphaned = true, false
		if !was {
			edited(ctx, now, now, "delete")
		}
		out.Effects = describeDeletion(s.forecast(now))
		return !was, nil
	})
	return out, err
}

// remove deletes one object, guarded by what was read.
func (s objects) remove(ctx context.Context, kind string, ns spec.Namespace, name string, effects []string) (*proto.DeleteResponse, error) {
	key := keyOf[kind](ns, name)
	_, kvs, err := s.cfg.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	kv, ok := kvs[key]
	if !ok {
		return nil, notFound(kind, ns, name)
	}
	txn := store.Txn{If: []store.Compare{store.Seen(key, kv.Mod)}, Then: []store.Op{store.Del(key)}}
	if kind == proto.KindService {
		if err := s.freeAddress(ctx, kv, &txn); err != nil {
			return nil, err
		}
	}
	if kind == proto.KindQuota {
		if err := s.unbound(ctx, ns, name, &txn); err != nil {
			return nil, err
		}
	}
	if err := s.commit(ctx, kind+" "+name, txn); err != nil {
		return nil, err
	}
	s.cfg.Cache.Look(s.addresses.look)
	return &proto.DeleteResponse{Effects: effects}, nil
}

// servedBy warns of the sets that are found under the service's name.
func (s objects) servedBy(ns spec.Namespace, name string, after *projection) []string {
	return s.warn(ns, after, func(v cache.View, set *records.Set) string {
		st := v.Status(set.Ref)
		if set.Service() == name || plan.Former(set, st, nil) == name {
			return fmt.Sprintf("set %s is still found under this name; not-ready members and ports follow the defaults now", set.Ref)
		}
		return ""
	})
}

// namedBy warns of the sets whose template names ref.
func (s objects) namedBy(ref dispatch.FileRef, after *projection) []string {
	return s.warn(ref.Namespace, after, func(_ cache.View, set *records.Set) string {
		if slices.Contains(dispatch.SourcesOf(ref.Namespace, &set.Spec), ref) {
			return fmt.Sprintf("set %s names it: unless it is optional, new members wait for it, and those that read it as variables do so when a container of theirs restarts; mounted files stay as they are", set.Ref)
		}
		return pulledWith(set, ref)
	})
}

// boundBy warns of the sets that a budget bounded.
func (s objects) boundBy(ns spec.Namespace, name string, after *projection) []string {
	return s.warn(ns, after, func(v cache.View, set *records.Set) string {
		if slices.ContainsFunc(v.WorldWith(set).Budgets, func(b *records.BudgetRecord) bool { return b.Name == name }) {
			return fmt.Sprintf("set %s is not bounded by it any more", set.Ref)
		}
		return ""
	})
}

// warn collects what about says of the sets of a namespace, as they are after an apply (nil: as
// they are); "": nothing.
func (s objects) warn(ns spec.Namespace, after *projection, about func(cache.View, *records.Set) string) (out []string) {
	s.cfg.Cache.Look(func(v cache.View) {
		refs := v.Sets()
		if after != nil {
			refs = after.allSets(refs)
		}
		for _, ref := range refs {
			if ref.Namespace != ns {
				continue
			}
			set := v.Set(ref)
			if after != nil {
				if now, given := after.sets[ref]; given {
					set = &now
				}
			}
			if text := about(v, set); text != "" {
				out = append(out, text)
			}
		}
	})
	return out
}
