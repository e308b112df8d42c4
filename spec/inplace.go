package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// liveResources are the resources that change while a container runs.
var liveResources = [...]string{"cpu", "memory"}

// ChangeInPlace is what a life of t would change in place to run to, and to without that: it needs a new life if t and rest differ. Of all fields those count that are named here; one that is added later is a difference. why says why what changes asks
// for a new life all the same, as a sentence without its subject; "": it does not.
func (t *Template) ChangeInPlace(to *Template) (c changes.InPlace, rest Template, why string) {
	rest = *to
	rest.Spec.Containers, rest.Spec.InitContainers = slices.Clone(to.Spec.Containers), slices.Clone(to.Spec.InitContainers)
	for i := range min(len(t.Spec.InitContainers), len(rest.Spec.InitContainers)) {
		if old, now := &t.Spec.InitContainers[i], &rest.Spec.InitContainers[i]; old.Role() == RoleSidecar && now.Role() == RoleSidecar {
			c = c.Plus(now.takeBack(old))
		}
	}
	for i := range min(len(t.Spec.Containers), len(rest.Spec.Containers)) {
		c = c.Plus(rest.Spec.Containers[i].takeBack(&t.Spec.Containers[i]))
	}
	if c.Resources {
		why = resourcesShown(&t.Spec, &to.Spec)
	}
	return c, rest, why
}

// takeBack gives c what old has of what changes in place, and says what that is.
func (c *Container) takeBack(old *Container) (diff changes.InPlace) {
	if c.Name != old.Name {
		return diff
	}
	if c.Image != old.Image {
		if c.pullsByDefault() && old.pullsByDefault() {
			c.ImagePullPolicy = old.ImagePullPolicy
		}
		c.Image, diff.Image = old.Image, true
	}
	for _, list := range [...]struct{ at, old *map[string]scalar.Quantity }{{&c.Resources.Limits, &old.Resources.Limits}, {&c.Resources.Requests, &old.Resources.Requests}} {
		for _, name := range liveResources {
			now, given := (*list.at)[name]
			was, gave := (*list.old)[name]
			if given == gave && now.Milli == was.Milli {
				continue
			}
			diff.Resources = true
			*list.at = maps.Clone(*list.at)
			if !gave {
				delete(*list.at, name)
				continue
			}
			if *list.at == nil {
				*list.at = map[string]scalar.Quantity{}
			}
			(*list.at)[name] = was
		}
	}
	return diff
}

// pullsByDefault: its policy follows from the image.
func (c *Container) pullsByDefault() bool {
	return c.ImagePullPolicy == "" || c.ImagePullPolicy == defaultPull(c.Image)
}

// resourcesShown says what of a member depends on the resources that change, and does not change while it runs; "": nothing does.
func resourcesShown(from, to *MemberSpec) string {
	if a, b := from.QOS(), to.QOS(); a != b {
		return "its class of memory changes from " + string(a) + " to " + string(b)
	}
	for c := range to.All() {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef.changesInPlace() {
				return "the variable " + e.Name + " shows a limit or request (resourceFieldRef)"
			}
		}
	}
	for f := range to.FileFacts() {
		if f.ResourceFieldRef.changesInPlace() {
			return "the file " + f.Path + " shows a limit or request (resourceFieldRef)"
		}
	}
	for i := range to.Volumes {
		v := &to.Volumes[i]
		if v.EmptyDir != nil && v.EmptyDir.Medium == MediumMemory && v.EmptyDir.boundBytes(from) != v.EmptyDir.boundBytes(to) {
			return "the limits of memory bound its volume " + v.Name
		}
	}
	return ""
}

// changesInPlace: what it shows may change while the member runs. r may be nil.
func (r *ResourceFieldRef) changesInPlace() bool {
	return r != nil && slices.ContainsFunc(liveResources[:], func(name string) bool { return strings.HasSuffix(r.Resource, "."+name) })
}

// boundBytes is the size of a volume in memory of a member; 0: it has no bound of its own.
func (e *EmptyDir) boundBytes(s *MemberSpec) int64 {
	limit := s.MemoryLimit()
	if e.SizeLimit == nil {
		return limit
	}
	if own := e.SizeLimit.Value(); limit == 0 || own > 0 && own < limit {
		return own
	}
	return limit
}
