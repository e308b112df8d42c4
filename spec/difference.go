package spec

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Difference is what members of some ordinals run in place of what the template says, or beside it.
type Difference struct {
	// Ordinals, as 3 or "5-7", are those of the members. One that the set does not have counts when it comes.
	Ordinals []OrdinalSpan `json:"ordinals"`
	// Container is the container, sidecar or init container that env, args and resources are about. Default: the
	// template's container, if it has one only.
	Container string `json:"container,omitempty"`
	// Env are variables: one that the container has gets this value in its place, others come after its own.
	Env []EnvVar `json:"env,omitempty"`
	// Args take the place of the container's.
	Args []string `json:"args,omitempty"`
	// Resources take the place of the container's, each by its name: cpu and memory. A limit without a request is the request, too.
	Resources *ResourceRequirements `json:"resources,omitempty"`
	// NodeSelector has labels that the member's node must have, too; one that the template names gets this value.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// Differences are all that a set has. No two entries say the same field of one member.
type Differences []Difference

// Of is which entries concern an ordinal, a bit each; there are 64 at most. Members of which it is the same run the same; 0: the
// template as it is.
func (d Differences) Of(ordinal int) (c uint64) {
	for i := range d {
		for _, s := range d[i].Ordinals {
			if ordinal >= int(s.First) && ordinal <= int(s.Last) {
				c |= 1 << i
			}
		}
	}
	return c
}

// Samples are ordinals for each value of Of that there is; one that no entry names is -1.
func (d Differences) Samples() []int {
	out := []int{-1}
	for i := range d {
		for _, s := range d[i].Ordinals {
			out = append(out, int(s.First), int(s.Last)+1)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Apply is what the member of an ordinal runs: t itself if no entry concerns it. It shares with t what it does not
// change; nobody may change either.
func (d Differences) Apply(t *Template, ordinal int) *Template {
	class := d.Of(ordinal)
	if class == 0 {
		return t
	}
	out := *t
	out.Spec.Containers, out.Spec.InitContainers = slices.Clone(t.Spec.Containers), slices.Clone(t.Spec.InitContainers)
	for i := range d {
		if class&(1<<i) != 0 {
			d[i].apply(&out.Spec)
		}
	}
	return &out
}

func (d *Difference) apply(s *MemberSpec) {
	s.NodeSelector = merged(s.NodeSelector, d.NodeSelector)
	c := d.In(s)
	if c == nil {
		return
	}
	if len(d.Env) > 0 {
		c.Env = mergedEnv(c.Env, d.Env)
	}
	if len(d.Args) > 0 {
		c.Args = d.Args
	}
	if r := d.Resources; r != nil {
		c.Resources.Limits, c.Resources.Requests = merged(c.Resources.Limits, r.Limits), merged(c.Resources.Requests, r.Requests)
	}
}

// In is the container of s that the entry is about; nil: there is no such one.
func (d *Difference) In(s *MemberSpec) *Container {
	if d.Container == "" && len(s.Containers) == 1 {
		return &s.Containers[0]
	}
	for c := range s.All() {
		if c.Name == d.Container && d.Container != "" {
			return c
		}
	}
	return nil
}

// merged is m with all of over, which wins.
func merged[V any](m, over map[string]V) map[string]V {
	if len(over) == 0 {
		return m
	}
	out := maps.Clone(m)
	if out == nil {
		out = make(map[string]V, len(over))
	}
	maps.Copy(out, over)
	return out
}

func mergedEnv(env, over []EnvVar) []EnvVar {
	out := slices.Clone(env)
	for _, e := range over {
		known := false
		for i := range env {
			if env[i].Name == e.Name {
				out[i], known = e, true
			}
		}
		if !known {
			out = append(out, e)
		}
	}
	return out
}

// canonicalMembers is equal for differences that mean the same, written alike.
func canonicalMembers(d Differences) []byte {
	d = Clone(d)
	defaulter{clear: true}.members(d)
	return canonicalJSON(d)
}

// members fills or clears what is a default of the entries.
func (d defaulter) members(list Differences) {
	for i := range list {
		d.env(list[i].Env)
		if r := list[i].Resources; r != nil {
			d.requests(r)
		}
	}
}

// Same reports whether d and o are written alike.
func (d Differences) Same(o Differences) bool {
	return len(d) == len(o) && string(canonicalMembers(d)) == string(canonicalMembers(o))
}

// Hash names t with these differences; without any it is HashTemplate.
func (d Differences) Hash(t Template) RevisionHash {
	if len(d) == 0 {
		return HashTemplate(t)
	}
	return hashOf(slices.Concat(canonicalTemplate(t), []byte("\nmembers "), canonicalMembers(d)))
}

// Needs is the level that an agent must have for all members of the set, and the path of the first field that asks for it.
func (s *SetSpec) Needs() (level int, field string) {
	level, field = s.Template.Spec.Needs()
	if field != "" {
		field = "spec.template.spec." + field
	}
	for i := range s.Members {
		if l, at := newest(reflect.ValueOf(&s.Members[i])); l > level {
			level, field = l, "spec.members["+strconv.Itoa(i)+"]"+at
		}
	}
	return level, field
}
