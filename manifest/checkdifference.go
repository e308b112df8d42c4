package manifest

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// maxDifferences bounds spec.members: a bit each of what spec.Differences.Of says.
const maxDifferences = 64

// differences checks the members that differ from the template.
func (c setChecks) differences(s *spec.SetSpec) {
	const at = "spec.members"
	if len(s.Members) > maxDifferences {
		c.fail(at, fmt.Sprintf("has %d entries", len(s.Members)), fmt.Sprintf("write at most %d; one may name many ordinals", maxDifferences))
		return
	}
	for i := range s.Members {
		d, p := &s.Members[i], index(at, i)
		c.differing(p, s, d)
		c.difference(p, &s.Template.Spec, d)
		for j := range i {
			c.apart(p, &s.Template.Spec, d, j, &s.Members[j])
		}
	}
}

// differing checks which members an entry is about.
func (c setChecks) differing(at string, s *spec.SetSpec, d *spec.Difference) {
	if len(d.Ordinals) == 0 {
		c.fail(at+".ordinals", "is missing", `write ordinals, as [0, "2-4"]`)
		return
	}
	if s.Replicas == nil {
		return
	}
	members := s.Ordinals.Range(int(*s.Replicas))
	for _, span := range d.Ordinals {
		if first := members.Next(int(span.First)); first <= int(span.Last) && first < members.End {
			return
		}
	}
	c.warn(at+".ordinals", "no member has one of these ordinals; the entry counts when one comes", "")
}

// difference checks what an entry says.
func (c setChecks) difference(at string, t *spec.MemberSpec, d *spec.Difference) {
	cc := containerChecks{checks: c.checks}
	c.labels(at+".nodeSelector", d.NodeSelector)
	cc.env(at+".env", d.Env)
	ofContainer := len(d.Env)+len(d.Args) > 0 || d.Resources != nil
	known := map[string]bool{}
	for x := range t.All() {
		known[x.Name] = true
	}
	x := d.In(t)
	switch {
	case !ofContainer && len(d.NodeSelector) == 0:
		c.fail(at, "says nothing of its members", "write env, args, resources or nodeSelector")
	case d.Container != "" && x == nil:
		c.fail(at+".container", scalar.Quote(d.Container)+" is not a container of the template", names(known))
	case d.Container != "" && !ofContainer:
		c.fail(at+".container", "has no effect without env, args or resources", "remove it")
	case x == nil && ofContainer:
		c.fail(at+".container", "is missing, and the template has several", names(known))
	}
	if d.Resources != nil {
		cc.differentResources(at+".resources", x, d.Resources)
	}
}

// differentResources checks those of an entry beside those of its container x; nil: that is not known.
func (c containerChecks) differentResources(at string, x *spec.Container, r *spec.ResourceRequirements) {
	if len(r.Limits)+len(r.Requests) == 0 {
		c.fail(at, "is empty", "write limits or requests")
	}
	for _, list := range []map[string]scalar.Quantity{r.Limits, r.Requests} {
		for _, name := range sortedKeys(list) {
			if strings.HasPrefix(name, scalar.HugePagesPrefix) {
				c.fail(at, scalar.Quote(name)+" is the same for all members", "write it in the template")
				return
			}
		}
	}
	c.resources(at, r)
	if x == nil {
		return
	}
	for _, name := range sortedKeys(r.Requests) {
		_, own := r.Limits[name]
		if limit, limited := x.Resources.Limits[name]; limited && !own && r.Requests[name].Milli > limit.Milli {
			c.fail(at+".requests["+showKey(name)+"]", fmt.Sprintf("%s is more than the limit %s of the template", r.Requests[name], limit), "write a limit, too, or request less")
		}
	}
}

// apart requires that the entry at does not say of a member what the one of number other says.
func (c setChecks) apart(at string, t *spec.MemberSpec, d *spec.Difference, other int, o *spec.Difference) {
	ordinal := shared(d.Ordinals, o.Ordinals)
	if ordinal < 0 {
		return
	}
	x, y := d.In(t), o.In(t)
	same := x != nil && x == y
	for _, f := range []struct {
		name string
		both bool
	}{
		{"env", same && len(d.Env) > 0 && len(o.Env) > 0},
		{"args", same && len(d.Args) > 0 && len(o.Args) > 0},
		{"resources", same && d.Resources != nil && o.Resources != nil},
		{"nodeSelector", len(d.NodeSelector) > 0 && len(o.NodeSelector) > 0},
	} {
		if f.both {
			c.fail(at+"."+f.name, fmt.Sprintf("members[%d] says it of ordinal %d already", other, ordinal), "write it in one entry for each ordinal")
		}
	}
}

// shared is the lowest ordinal that is in a and in b; -1: none.
func shared(a, b []spec.OrdinalSpan) int {
	lowest := -1
	for _, x := range a {
		for _, y := range b {
			if first := max(x.First, y.First); first <= min(x.Last, y.Last) && (lowest < 0 || int(first) < lowest) {
				lowest = int(first)
			}
		}
	}
	return lowest
}
