package control

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// keyOf is the key of an object in the store, of the kinds that users apply.
var keyOf = map[string]func(spec.Namespace, string) string{
	proto.KindSet: func(ns spec.Namespace, name string) string {
		return store.SetKey(spec.SetRef{Namespace: ns, Name: spec.SetName(name)})
	},
	proto.KindService: store.ServiceKey, proto.KindEndpoints: store.EndpointsKey, proto.KindSlice: store.SliceKey, proto.KindBudget: store.BudgetKey, proto.KindNetworkPolicy: store.NetworkPolicyKey, proto.KindQuota: store.QuotaKey, proto.KindClaim: store.ClaimKey, proto.KindConfigMap: store.ConfigKey, proto.KindSecret: store.SecretKey,
}

// object is what is shown of one thing.
type object = records.Shown[any, any]

// item is one object with what requests choose by.
type item struct {
	kind string
	set  spec.SetName // the set it belongs to; "" for objects of no set
	body object
}

func (i item) ns() spec.Namespace { return i.body.Metadata.Namespace }
func (i item) name() string       { return i.body.Metadata.Name }

// wire makes the object that is sent.
func (i item) wire() (*proto.Object, error) {
	doc, err := json.Marshal(i.body)
	if err != nil {
		return nil, internal("encode %s %s: not valid JSON", i.kind, i.name())
	}
	return &proto.Object{Kind: i.kind, Namespace: string(i.ns()), Name: i.name(), Json: doc}, nil
}

// query is what a request chooses.
type query struct {
	kind     string
	ns       spec.Namespace // "": all
	name     string         // "": all
	set      spec.SetName   // "": all
	selector *spec.LabelSelector
}

// mayHold reports whether what q asks for can be the set ref or belong to it.
func (q query) mayHold(ref spec.SetRef) bool {
	if q.ns != "" && ref.Namespace != q.ns || q.set != "" && ref.Name != q.set {
		return false
	}
	return q.name == "" || q.named() == ref.Name
}

// named is the set that the name of q is, or is of a member of; "": none.
func (q query) named() spec.SetName {
	if q.kind == proto.KindSet {
		return spec.SetName(q.name)
	}
	set, _, err := spec.ParseMemberName(q.name)
	if err != nil {
		return ""
	}
	return set
}

// choose keeps what q asks for, sorted by namespace and name.
func (q query) choose(items []item) []item {
	out := items[:0:0]
	for _, i := range items {
		if (q.ns == "" || i.ns() == "" || i.ns() == q.ns) && (q.name == "" || i.name() == q.name) &&
			(q.set == "" || i.set == q.set) && (q.selector == nil || q.selector.Matches(i.body.Metadata.Labels)) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.ns(), b.ns()), compareNames(a.name(), b.name()))
	})
	return out
}

// compareNames orders db-2 before db-10.
func compareNames(a, b string) int {
	setA, ordA, errA := spec.ParseMemberName(a)
	setB, ordB, errB := spec.ParseMemberName(b)
	if errA == nil && errB == nil {
		return cmp.Or(cmp.Compare(setA, setB), cmp.Compare(ordA, ordB))
	}
	return cmp.Compare(a, b)
}
