package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/tally"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/store"
)

// countedKinds are the kinds of which objects count, by the kinds of their manifests.
var countedKinds = map[string]string{
	proto.KindSet: "StatefulSet", proto.KindClaim: "PersistentVolumeClaim", proto.KindService: "Service",
	proto.KindConfigMap: "ConfigMap", proto.KindSecret: "Secret",
}

// count decides by the quotas of each namespace in which something changes that counts. It is refused as a whole.
func (d *draft) count(ctx context.Context, o *manifest.Objects, again bool) error {
	spaces := map[spec.Namespace]store.Rev{} // the newest that was read
	brings := map[spec.Namespace]bool{}
	for _, e := range d.edits {
		ns, isQuota := spec.Namespace(e.applied.GetNamespace()), e.applied.GetKind() == proto.KindQuota
		if e.value != nil && (isQuota || countedKinds[e.applied.GetKind()] != "") {
			spaces[ns], brings[ns] = max(spaces[ns], e.seen), brings[ns] || isQuota
		}
	}
	var problems []manifest.Problem
	for _, ns := range slices.Sorted(maps.Keys(spaces)) {
		b, err := d.bounds(ctx, ns, spaces[ns], brings[ns], again)
		if err == nil {
			err = d.countIn(b, brings[ns], o, &problems)
		}
		if err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return precondition("%s", strings.Join(texts(problems), "\n"))
	}
	return nil
}

// countIn is count for one namespace.
func (d *draft) countIn(b bounds, brings bool, o *manifest.Objects, problems *[]manifest.Problem) error {
	if b.none() && !brings {
		b.guard(&d.counted)
		return nil
	}
	changed, err := d.alter(&b)
	if err != nil {
		return err
	}
	b.guard(&d.counted)
	after := b.held.Clone()
	for _, c := range changed {
		c.put(&after)
	}
	*problems = append(*problems, b.located(b.refuses(&after), changed, o)...)
	return nil
}

// counted is an object that changes, and how it is put into what a namespace holds.
type counted struct {
	kind, name string
	put        func(*tally.Contents)
}

// alter has in b the quotas as they will be, and takes out what the store does not have, whatever the view shows. It lists what changes.
func (d *draft) alter(b *bounds) (out []counted, err error) {
	for _, r := range d.removals {
		if r.applied.GetNamespace() == string(b.ns) {
			out = append(out, counted{r.applied.GetKind(), r.applied.GetName(), r.put})
		}
	}
	for _, e := range d.edits {
		kind, name := e.applied.GetKind(), e.applied.GetName()
		if e.value == nil || e.applied.GetNamespace() != string(b.ns) {
			continue
		}
		if kind == proto.KindQuota {
			now, err := store.Decode[records.QuotaRecord](store.KV{Key: e.key, Value: e.value})
			if err != nil {
				return nil, err
			}
			same := func(name string) bool { return name == now.Name }
			b.quotas = append(slices.DeleteFunc(b.quotas, func(q *records.QuotaRecord) bool { return same(q.Name) }), &now)
			b.unread = slices.DeleteFunc(b.unread, same)
			continue
		}
		if e.seen == 0 {
			drop(&b.held, kind, name)
		}
		put, err := putOf(kind, store.KV{Key: e.key, Value: e.value})
		if err != nil {
			return nil, err
		}
		out = append(out, counted{kind, name, put})
	}
	return out, nil
}

// put is what the removal leaves in h.
func (r removal) put(h *tally.Contents) {
	if r.set != nil {
		h.PutSet(r.set)
		return
	}
	drop(h, r.applied.GetKind(), r.applied.GetName())
}

// drop takes an object out of h.
func drop(h *tally.Contents, kind, name string) {
	switch kind {
	case proto.KindSet:
		delete(h.Sets, spec.SetName(name))
	case proto.KindClaim:
		delete(h.Claims, name)
	case proto.KindService:
		delete(h.Services, name)
	case proto.KindConfigMap:
		delete(h.Configs, name)
	case proto.KindSecret:
		delete(h.Secrets, name)
	}
}

// putOf puts a record of kind into what a namespace holds, in the place of the one of its name.
func putOf(kind string, kv store.KV) (func(*tally.Contents), error) {
	switch kind {
	case proto.KindSet:
		r, err := store.Decode[records.Set](kv)
		return func(h *tally.Contents) { h.PutSet(&r) }, err
	case proto.KindClaim:
		r, err := store.Decode[records.ClaimRecord](kv)
		return func(h *tally.Contents) { h.Claims[r.Name] = &r }, err
	case proto.KindService:
		r, err := store.Decode[records.ServiceRecord](kv)
		return func(h *tally.Contents) { h.Services[r.Name] = &r }, err
	case proto.KindConfigMap:
		r, err := store.Decode[records.ConfigRecord](kv)
		return func(h *tally.Contents) { h.Configs[r.Name] = &r }, err
	case proto.KindSecret:
		r, err := store.Decode[records.SecretRecord](kv)
		return func(h *tally.Contents) { h.Secrets[r.Name] = &r }, err
	}
	return func(*tally.Contents) {}, nil
}

// located gives each excess the place of the object with which it begins.
func (b *bounds) located(excess []tally.Excess, changed []counted, o *manifest.Objects) (out []manifest.Problem) {
	if len(excess) == 0 {
		return nil
	}
	h := b.held.Clone()
	was := h.Totals()
	placed := make([]bool, len(excess))
	for _, c := range changed {
		c.put(&h)
		now := h.Totals()
		for i, e := range excess {
			more := now.Amounts[e.Resource] > was.Amounts[e.Resource] && (e.Unread || now.Amounts[e.Resource] > e.Hard)
			if e.Unsaid {
				more = now.Unsaid[e.Resource] > was.Unsaid[e.Resource]
			}
			if !more || placed[i] {
				continue
			}
			placed[i] = true
			kind := countedKinds[c.kind]
			p := manifest.Problem{Path: pathOf(c, e, &h), What: fmt.Sprintf("%s %s/%s: %s", kind, b.ns, c.name, e), Fix: e.Fix() + "; nothing was written"}
			out = append(out, o.Locate(kind, b.ns, c.name, []manifest.Problem{p})...)
		}
		was = now
	}
	return out
}

// pathOf is the field of an object by which it asks for a resource; "": the object itself is what counts.
func pathOf(c counted, e tally.Excess, h *tally.Contents) string {
	switch c.kind {
	case proto.KindSet:
		return setPath(h.Sets[spec.SetName(c.name)].Set, e)
	case proto.KindClaim:
		return "spec.resources.requests"
	}
	return ""
}

func setPath(set *records.Set, e tally.Excess) string {
	switch e.Resource {
	case quota.Sets:
		return ""
	case quota.Pods:
		return "spec.replicas"
	case quota.Volumes, quota.Storage:
		return "spec.volumeClaimTemplates"
	}
	if e.Unsaid {
		if at := tally.Unsaid(&set.Spec.Template, e.Resource); at != "" {
			return "spec.template.spec." + at + ".resources"
		}
	}
	return "spec.template.spec.containers"
}

// outrun reports whether a change that counts was written since d was decided by it.
func (s objects) outrun(ctx context.Context, d *draft) bool {
	keys := make([]string, 0, len(d.counted.If))
	for _, c := range d.counted.If {
		keys = append(keys, c.Key)
	}
	if len(keys) == 0 {
		return false
	}
	_, kvs, err := s.cfg.Store.Get(ctx, keys...)
	return err == nil && slices.ContainsFunc(d.counted.If, func(c store.Compare) bool { return kvs[c.Key].Mod != c.Rev })
}
