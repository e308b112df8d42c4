package spec

import "github.com/stead-project/stead/spec/scalar"

// HugePages are those that a container may use: as many as are kept for it.
func (r *ResourceRequirements) HugePages() scalar.HugePages {
	two, one := r.Limits[scalar.HugePagesPrefix+"2Mi"], r.Limits[scalar.HugePagesPrefix+"1Gi"]
	return scalar.HugePages{Of2Mi: two.Value(), Of1Gi: one.Value()}
}

// HugePages are those that the members ask for, counted as Requests are.
func (s *MemberSpec) HugePages() scalar.HugePages {
	return scalar.HugePages{
		Of2Mi: s.requested(func(r ResourceRequirements) int64 { return r.HugePages().Of2Mi }),
		Of1Gi: s.requested(func(r ResourceRequirements) int64 { return r.HugePages().Of1Gi }),
	}
}

// hugePagesLevel is the level at which agents bound huge pages: names of resources have no tag.
const hugePagesLevel = 2

// hugePagesField is the first resource of a container that is huge pages; "": there is none.
func (s *MemberSpec) hugePagesField() string {
	for _, list := range []struct {
		name string
		of   []Container
	}{{"initContainers", s.InitContainers}, {"containers", s.Containers}} {
		for i := range list.of {
			if list.of[i].Resources.HugePages() != (scalar.HugePages{}) {
				return list.name + indexed(i) + ".resources"
			}
		}
	}
	return ""
}
