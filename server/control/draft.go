package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// draft is an apply, ready to be written.
type draft struct {
	*shared
	stored   map[string]store.KV // the objects as they were read
	edits    []edit
	removals []removal
	after    projection
	warnings []string
	refused  []manifest.Problem // what the objects that are there do not allow
	counted  store.Txn          // what quotas ask the transaction to compare, and to write
	trace    string             // names the span of the apply
}

// draft reads what is there and decides about each object; it writes nothing.
func (s objects) draft(ctx context.Context, o *manifest.Objects, rename bool) (*draft, error) {
	kvs, err := s.present(ctx, o)
	if err != nil {
		return nil, err
	}
	d := &draft{shared: s.shared, stored: kvs, trace: s.cfg.Trace.New(""), after: projection{
		sets: map[spec.SetRef]records.Set{}, files: map[dispatch.FileRef]string{}, pruned: map[spec.SetRef]bool{},
		claims: map[spec.Identity]*records.ClaimRecord{},
	}}
	if err := d.others(o); err != nil {
		return nil, err
	}
	d.warnings = append(d.warnings, mapClasses(o, s.cfg.Classes)...)
	conflicts, err := d.claims(o)
	if err != nil {
		return nil, err
	}
	unfit, err := d.sets(ctx, o, rename)
	if err != nil {
		return nil, err
	}
	conflicts = append(conflicts, unfit...)
	s.cfg.Cache.Look(func(v cache.View) {
		d.refused = append(d.refused, d.after.hostPorts(v, o)...)
		d.warnings = slices.Concat(d.warnings, d.after.ports(v), d.after.ledNowhere(v), d.after.missing(v), d.after.missingClaims(v), d.after.unenforced(v), d.after.withoutCredentials(v), d.withoutService(v), d.unled(v))
	})
	d.warnings = append(d.warnings, d.rerendered(o)...)
	problems := tooLarge(d.edits)
	conflicts = append(texts(d.refused), conflicts...)
	switch {
	case len(conflicts) > 0:
		return nil, precondition("%s", strings.Join(append(conflicts, problems...), "\n"))
	case len(problems) > 0:
		return nil, invalid("%s", strings.Join(problems, "\n"))
	}
	return d, nil
}

// present reads all objects of an apply, in portions of what a store reads at once.
func (s objects) present(ctx context.Context, o *manifest.Objects) (map[string]store.KV, error) {
	var keys []string
	add := func(kind string, m *spec.ObjectMeta) { keys = append(keys, keyOf[kind](m.Namespace, m.Name)) }
	for i := range o.Sets {
		add(proto.KindSet, &o.Sets[i].Metadata)
	}
	for i := range o.Services {
		add(proto.KindService, &o.Services[i].Metadata)
	}
	for i := range o.Endpoints {
		add(proto.KindEndpoints, &o.Endpoints[i].Metadata)
	}
	for i := range o.Slices {
		add(proto.KindSlice, &o.Slices[i].Metadata)
	}
	for i := range o.Budgets {
		add(proto.KindBudget, &o.Budgets[i].Metadata)
	}
	for i := range o.Policies {
		add(proto.KindNetworkPolicy, &o.Policies[i].Metadata)
	}
	for i := range o.Quotas {
		add(proto.KindQuota, &o.Quotas[i].Metadata)
	}
	for i := range o.Claims {
		add(proto.KindClaim, &o.Claims[i].Metadata)
	}
	for i := range o.ConfigMaps {
		add(proto.KindConfigMap, &o.ConfigMaps[i].Metadata)
	}
	for i := range o.Secrets {
		add(proto.KindSecret, &o.Secrets[i].Metadata)
	}
	if len(o.Secrets) > 0 {
		keys = append(keys, store.KeyringKey)
	}
	if len(keys) > store.MaxOps {
		return nil, invalid(
			"%d objects at once; at most %d fit one transaction: apply them in parts", len(keys), store.MaxOps)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	_, kvs, err := s.cfg.Store.Get(ctx, keys...)
	return kvs, err
}

func refOf(m spec.StatefulSet) spec.SetRef {
	return spec.SetRef{Namespace: m.Metadata.Namespace, Name: spec.SetName(m.Metadata.Name)}
}

// others decides about all that is not a set, in the order in which it is reported.
func (d *draft) others(o *manifest.Objects) error {
	add := func(e edit, err error) error {
		d.edits = append(d.edits, e)
		return err
	}
	// files is add for an object that may be immutable.
	files := func(kind string, m *spec.ObjectMeta, e edit, err error) error {
		if e.frozen {
			p := manifest.Problem{Path: "immutable", What: fmt.Sprintf("%s %s/%s is immutable, and would change", kind, m.Namespace, m.Name),
				Fix: "write another name, or delete the object first"}
			d.refused = append(d.refused, o.Locate(kind, m.Namespace, m.Name, []manifest.Problem{p})...)
		}
		return add(e, err)
	}
	for _, m := range o.ConfigMaps {
		e, err := configEdit(m, d.stored)
		if err := files("ConfigMap", &m.Metadata, e, err); err != nil {
			return err
		}
		d.after.files[dispatch.FileRef{Kind: dispatch.KindConfigMap, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name}] = ""
	}
	for _, m := range o.Secrets {
		e, err := secretEdit(m, d.stored, d.cfg.Key)
		if err := files("Secret", &m.Metadata, e, err); err != nil {
			return err
		}
		d.after.files[dispatch.FileRef{Kind: dispatch.KindSecret, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name}] = m.Type
	}
	for _, m := range o.Services {
		if err := d.service(m, o); err != nil {
			return err
		}
	}
	if err := d.endpoints(o); err != nil {
		return err
	}
	for _, m := range o.Budgets {
		e, now, err := budgetEdit(m, d.stored)
		if add(e, err) != nil {
			return err
		}
		d.after.budgets = append(d.after.budgets, now)
	}
	for _, m := range o.Policies {
		e, now, err := networkPolicyEdit(m, d.stored)
		if add(e, err) != nil {
			return err
		}
		d.after.policies = append(d.after.policies, now)
	}
	for _, m := range o.Quotas {
		if err := add(quotaEdit(m, d.stored)); err != nil {
			return err
		}
	}
	return nil
}

// sets decides about the sets; problems tell why what is there does not allow it.
func (d *draft) sets(ctx context.Context, o *manifest.Objects, rename bool) ([]string, error) {
	var problems []manifest.Problem
	var conflicts []string
	for _, m := range o.Sets {
		ref := refOf(m)
		meta := editMeta{newUID(), time.Now().UTC(), user(ctx), rename, d.trace}
		e, wrong, err := setEdit(m, d.stored[store.SetKey(ref)], meta, o.Seen(ref))
		if err != nil {
			return nil, err
		}
		switch e.applied.GetOutcome() {
		case created:
			ahead := d.ahead(e.now)
			unknown, warnings := unknownClasses("set "+ref.String(), templateClasses(e.now), ahead.Nodes)
			wrong, d.warnings = append(wrong, unknown...), append(d.warnings, warnings...)
			wrong = append(wrong, oldAgents(nil, ahead)...)
			conflicts = append(conflicts, keptProblems(e.now, ahead.Slots)...)
			e.applied.Effects = describeCreation(plan.Preview(ahead))
		case configured, adopted:
			unfit, others, err := d.change(ctx, &e)
			if err != nil {
				return nil, err
			}
			wrong = append(wrong, unfit...)
			conflicts = append(conflicts, others...)
		}
		problems = append(problems, o.Locate("StatefulSet", ref.Namespace, string(ref.Name), wrong)...)
		d.edits = append(d.edits, e)
		d.after.sets[ref] = *e.now
	}
	return append(texts(problems), conflicts...), nil
}

// ahead is a set's world as it would be with now, and with the budgets of this apply.
func (d *draft) ahead(now *records.Set) plan.World {
	w := d.world(now.Ref, now)
	for _, b := range d.after.budgets {
		w.Budgets = slices.DeleteFunc(w.Budgets, func(old *records.BudgetRecord) bool { return old.Namespace == b.Namespace && old.Name == b.Name })
		if b.Selects(now) {
			w.Budgets = append(w.Budgets, b)
		}
	}
	w.Isolated = w.Isolated || d.after.isolates(now)
	for name := range w.Claims {
		if r := d.after.claims[spec.ClaimIdentity(now.Ref.Namespace, name)]; r != nil {
			w.Claims[name].Record = r
		}
	}
	return w
}
