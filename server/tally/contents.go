package tally

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

// CountedSet is a set with what its members below the partition run.
type CountedSet struct {
	*records.Set
	// Current is its current revision; nil: there is none yet.
	Current *records.Revision
}

// CountedVolume is one that is there, or that a person wants back from the trash.
type CountedVolume struct {
	ID    spec.Identity
	Claim spec.ClaimName
	Bytes int64
}

// Contents is all that a namespace holds of what is counted.
type Contents struct {
	Sets     map[spec.SetName]CountedSet
	Claims   map[string]*records.ClaimRecord
	Services map[string]*records.ServiceRecord
	Configs  map[string]*records.ConfigRecord
	Secrets  map[string]*records.SecretRecord
	// Volumes are those with a record that are not on their way to the trash, and those that are wanted back.
	Volumes []CountedVolume
}

// Totals is what a namespace uses, by resource (quota.Resources).
type Totals struct {
	// Amounts are thousandths of a processor, or whole ones. What is not there is 0.
	Amounts map[string]int64
	// Unsaid is how many members have a container that does not say how much it asks for, or is limited to.
	Unsaid map[string]int64
}

// Totals adds up what h holds.
func (h *Contents) Totals() Totals {
	u := Totals{Amounts: map[string]int64{}, Unsaid: map[string]int64{}}
	volumes := map[volumeOf]int64{}
	claim := func(id spec.Identity, name spec.ClaimName, bytes int64) {
		key := volumeOf{id, name}
		volumes[key] = max(volumes[key], bytes)
	}
	for _, v := range h.Volumes {
		claim(v.ID, v.Claim, v.Bytes)
	}
	for _, s := range h.Sets {
		if !s.Deleting {
			u.addSet(s, claim)
		}
	}
	for _, c := range h.Claims {
		if !c.Deleting {
			claim(c.Identity(), spec.ClaimName(c.Name), c.Spec.SizeBytes())
		}
	}
	for _, bytes := range volumes {
		u.add(quota.Volumes, 1, 1)
		u.add(quota.Storage, bytes, 1)
	}
	for _, s := range h.Services {
		u.addService(s)
	}
	for _, c := range h.Configs {
		u.add(quota.ConfigMaps, 1, 1)
		for name, content := range c.Files {
			u.add(quota.ConfigMapBytes, int64(len(name)+len(content)), 1)
		}
	}
	for _, s := range h.Secrets {
		u.add(quota.Secrets, 1, 1)
		u.add(quota.SecretBytes, int64(len(s.Sealed)), 1)
	}
	return u
}

// volumeOf names the volume of an identity's claim, whichever it is.
type volumeOf struct {
	id    spec.Identity
	claim spec.ClaimName
}

// add counts n so many times, up to what an int64 holds.
func (u *Totals) add(resource string, n, times int64) {
	u.Amounts[resource] = plus(u.Amounts[resource], n, times)
}

// plus is sum and times × n, none of them negative; the most that there is where it is more.
func plus(sum, n, times int64) int64 {
	if times == 0 || n == 0 {
		return sum
	}
	if n > (math.MaxInt64-sum)/times {
		return math.MaxInt64
	}
	return sum + n*times
}

// addSet counts the members that s asks for, and tells their claims.
func (u *Totals) addSet(s CountedSet, claim func(spec.Identity, spec.ClaimName, int64)) {
	members := s.Range()
	u.add(quota.Sets, 1, 1)
	u.add(quota.Pods, int64(s.Replicas()), 1)
	below := 0 // the partition
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil && s.Current != nil {
		below = members.First + int(*r.Partition)
	}
	count := map[memberKind]int64{}
	for _, ordinal := range members.All() {
		count[s.kindOf(ordinal, ordinal < below)]++
		id := spec.Identity{Namespace: s.Ref.Namespace, Set: s.Ref.Name, Ordinal: ordinal}
		for i := range s.Spec.VolumeClaimTemplates {
			c := &s.Spec.VolumeClaimTemplates[i]
			claim(id, spec.ClaimName(c.Metadata.Name), c.Spec.SizeBytes())
		}
	}
	for kind, n := range count {
		a := asks(s.Spec.Members.Apply(&s.Spec.Template, kind.like))
		if kind.held {
			a = a.most(asks(s.Current.TemplateOf(kind.like)))
		}
		u.addMembers(a, n)
	}
}

// memberKind is what members have in common that ask for the same.
type memberKind struct {
	held bool // below the partition
	like int  // the ordinal; -1: one that no entry names
}

// kindOf is that of an ordinal. Members that no entry of spec.members names, now or in the current revision, are alike.
func (s *CountedSet) kindOf(ordinal int, held bool) memberKind {
	kind := memberKind{held: held, like: -1}
	if s.Spec.Members.Of(ordinal) != 0 || held && s.Current.Members.Of(ordinal) != 0 {
		kind.like = ordinal
	}
	return kind
}

// ask is what one member asks for.
type ask struct {
	amounts map[string]int64
	unsaid  map[string]bool
}

// bounded are the resources of containers, and of which every container must say how much where a quota bounds them.
var bounded = []struct {
	resource string
	must     bool
	of       func(*spec.ResourceRequirements) (scalar.Quantity, bool)
}{
	{quota.RequestsCPU, true, func(r *spec.ResourceRequirements) (scalar.Quantity, bool) { q, is := r.Requests["cpu"]; return q, is }},
	{quota.RequestsMemory, true, func(r *spec.ResourceRequirements) (scalar.Quantity, bool) {
		q, is := r.Requests["memory"]
		return q, is
	}},
	{quota.LimitsCPU, true, func(r *spec.ResourceRequirements) (scalar.Quantity, bool) { q, is := r.Limits["cpu"]; return q, is }},
	{quota.LimitsMemory, true, func(r *spec.ResourceRequirements) (scalar.Quantity, bool) { q, is := r.Limits["memory"]; return q, is }},
	{quota.HugePages2Mi, false, func(r *spec.ResourceRequirements) (scalar.Quantity, bool) {
		q, is := r.Limits["hugepages-2Mi"]
		return q, is
	}},
	{quota.HugePages1Gi, false, func(r *spec.ResourceRequirements) (scalar.Quantity, bool) {
		q, is := r.Limits["hugepages-1Gi"]
		return q, is
	}},
}

// asks is what a member of template t asks for at any moment of its start, as Kubernetes counts it.
func asks(t *spec.Template) ask {
	a := ask{map[string]int64{}, map[string]bool{}}
	for _, b := range bounded {
		var lasting, most int64
		for c, role := range t.Spec.All() {
			q, said := b.of(&c.Resources)
			if !said && b.must {
				a.unsaid[b.resource] = true
			}
			n := quota.Amount(b.resource, q)
			if role == spec.RoleInit {
				most = max(most, plus(lasting, n, 1))
			} else {
				lasting = plus(lasting, n, 1)
			}
		}
		a.amounts[b.resource] = max(most, lasting)
	}
	return a
}

// most is what a or b asks for, of each resource whichever is more.
func (a ask) most(b ask) ask {
	out := ask{map[string]int64{}, map[string]bool{}}
	for _, x := range bounded {
		out.amounts[x.resource] = max(a.amounts[x.resource], b.amounts[x.resource])
		out.unsaid[x.resource] = a.unsaid[x.resource] || b.unsaid[x.resource]
	}
	return out
}

func (u *Totals) addMembers(a ask, n int64) {
	for resource, amount := range a.amounts {
		u.add(resource, amount, n)
	}
	for resource, unsaid := range a.unsaid {
		if unsaid {
			u.Unsaid[resource] += n
		}
	}
}

func (u *Totals) addService(s *records.ServiceRecord) {
	u.add(quota.Services, 1, 1)
	u.add(quota.NodePorts, int64(len(s.NodePorts())), 1)
	if s.Spec.Type == "LoadBalancer" {
		u.add(quota.LoadBalancers, 1, 1)
	}
}

// Clone is h in maps of its own.
func (h *Contents) Clone() Contents {
	out := *h
	out.Sets, out.Claims, out.Services, out.Configs, out.Secrets = maps.Clone(h.Sets), maps.Clone(h.Claims), maps.Clone(h.Services), maps.Clone(h.Configs), maps.Clone(h.Secrets)
	out.Volumes = slices.Clone(h.Volumes)
	return out
}

// PutSet has s in the place of the set of its name; what the members below the partition run stays.
func (h *Contents) PutSet(s *records.Set) {
	h.Sets[s.Ref.Name] = CountedSet{Set: s, Current: h.Sets[s.Ref.Name].Current}
}

// Unsaid is the first container of t that does not say how much it has of a resource, as "containers[0]"; "": all say it.
func Unsaid(t *spec.Template, resource string) string {
	for _, b := range bounded {
		if b.resource != resource || !b.must {
			continue
		}
		for _, list := range []struct {
			name string
			of   []spec.Container
		}{{"initContainers", t.Spec.InitContainers}, {"containers", t.Spec.Containers}} {
			for i := range list.of {
				if _, said := b.of(&list.of[i].Resources); !said {
					return fmt.Sprintf("%s[%d]", list.name, i)
				}
			}
		}
	}
	return ""
}
