package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// prunable are the kinds that apply deletes with prune, sets first, by the kind of their keys. All
// objects of these kinds were made by apply; volumes are not among them.
var prunable = []struct{ kind, keys string }{
	{proto.KindSet, store.KindSet}, {proto.KindService, store.KindService}, {proto.KindEndpoints, store.KindEndpoints}, {proto.KindSlice, store.KindSlice}, {proto.KindBudget, store.KindBudget},
	{proto.KindNetworkPolicy, store.KindNetworkPolicy},
	{proto.KindConfigMap, store.KindConfig}, {proto.KindSecret, store.KindSecret},
}

// removal is an object that an apply deletes.
type removal struct {
	applied *proto.Applied
	key     string
	seen    store.Rev
	set     *records.Set // a set as it will be: marked; nil: the object is removed at once
}

func (r removal) name() string {
	return fmt.Sprintf("%s %s/%s", r.applied.GetKind(), r.applied.GetNamespace(), r.applied.GetName())
}

func (r removal) op() store.Op {
	if r.set != nil {
		return store.Put(r.key, store.Encode(r.set))
	}
	return store.Del(r.key)
}

// applySelector is the selector of a request; nil: all objects. It refuses a prune without one.
func applySelector(r *proto.ApplyRequest) (*spec.LabelSelector, error) {
	if r.GetPrune() != nil && r.GetPrune().GetAll() == (r.GetSelector() != "") {
		return nil, invalid("prune needs either a selector or all")
	}
	if r.GetSelector() == "" {
		return nil, nil
	}
	s, err := spec.ParseSelector(r.GetSelector())
	if err != nil {
		return nil, invalid("selector: %v", err)
	}
	return s, nil
}

// prune finds what is stored and not in o, of the objects that selector chooses, in the namespaces
// of o, as Kubernetes' prune does.
func (d *draft) prune(ctx context.Context, o *manifest.Objects, p *proto.Prune, selector *spec.LabelSelector) error {
	if p == nil {
		return nil
	}
	given := map[string]bool{}
	var spaces []spec.Namespace
	for _, e := range d.edits {
		given[e.key] = true
		spaces = append(spaces, spec.Namespace(e.applied.GetNamespace()))
	}
	slices.Sort(spaces)
	for _, k := range prunable {
		for _, ns := range slices.Compact(slices.Clone(spaces)) {
			kvs, err := d.snapshot(ctx, k.keys, ns)
			if err != nil {
				return err
			}
			for _, kv := range kvs {
				if given[kv.Key] {
					continue
				}
				if err := d.addRemoval(ctx, k.kind, kv, selector); err != nil {
					return err
				}
			}
		}
	}
	d.describeRemovals()
	return d.unexpected(p.GetExpected())
}

// addRemoval adds one object, if the selector chooses it. A set that is orphaned belongs to nobody,
// and one that is being deleted needs nothing more.
func (d *draft) addRemoval(ctx context.Context, kind string, kv store.KV, selector *spec.LabelSelector) error {
	r := removal{key: kv.Key, seen: kv.Mod}
	var labels map[string]string
	ns, name := spec.Namespace(""), ""
	if kind == proto.KindSet {
		set, err := before[records.Set](kv)
		if err != nil || set.Orphaned || set.Deleting {
			return err
		}
		set.Deleting = true
		edited(ctx, set, set, "delete")
		r.set, labels, ns, name = set, set.Labels, set.Ref.Namespace, string(set.Ref.Name)
	} else {
		common, err := before[struct{ records.Meta }](kv) // all others have it
		if err != nil {
			return err
		}
		labels, ns, name = common.Labels, common.Namespace, common.Name
	}
	if selector != nil && !selector.Matches(labels) {
		return nil
	}
	if r.set != nil {
		d.after.pruned[r.set.Ref] = true
	}
	r.applied = &proto.Applied{Kind: kind, Namespace: string(ns), Name: name, Outcome: "deleted"}
	d.removals = append(d.removals, r)
	return nil
}

// describeRemovals says what comes of each, once all are known.
func (d *draft) describeRemovals() {
	s := objects{d.shared}
	for _, r := range d.removals {
		ns, name := spec.Namespace(r.applied.GetNamespace()), r.applied.GetName()
		switch r.applied.GetKind() {
		case proto.KindSet:
			r.applied.Effects = describeDeletion(d.forecast(r.set))
		case proto.KindService:
			r.applied.Effects = s.servedBy(ns, name, &d.after)
		case proto.KindBudget:
			r.applied.Effects = s.boundBy(ns, name, &d.after)
		case proto.KindNetworkPolicy:
			r.applied.Effects = s.isolatedBy(ns, name, &d.after)
		case proto.KindConfigMap:
			r.applied.Effects = s.namedBy(dispatch.FileRef{Kind: dispatch.KindConfigMap, Namespace: ns, Name: name}, &d.after)
		case proto.KindSecret:
			r.applied.Effects = s.namedBy(dispatch.FileRef{Kind: dispatch.KindSecret, Namespace: ns, Name: name}, &d.after)
		}
	}
}

// unexpected refuses to delete what a dry run did not show; none expected: there was none.
func (d *draft) unexpected(expected []string) error {
	var more []string
	for _, r := range d.removals {
		if len(expected) > 0 && !slices.Contains(expected, r.name()) {
			more = append(more, r.name())
		}
	}
	if len(more) > 0 {
		return conflict("--prune would now also delete %s; nothing was changed, try again", strings.Join(more, ", "))
	}
	return nil
}

// allSets are the sets that there are after the apply: present ones that stay, and new ones.
func (a *projection) allSets(present []spec.SetRef) []spec.SetRef {
	refs := append(slices.Clone(present), a.refs()...)
	slices.SortFunc(refs, spec.SetRef.Compare)
	return slices.DeleteFunc(slices.Compact(refs), func(ref spec.SetRef) bool { return a.pruned[ref] })
}
