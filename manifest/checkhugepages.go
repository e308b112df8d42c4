package manifest

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// hugePages checks how many are limited or requested: whole pages, as in Kubernetes.
func (c containerChecks) hugePages(at, name string, q scalar.Quantity) {
	size := scalar.HugePageSize(name)
	switch {
	case size == 0:
		c.fail(at, scalar.Quote(name)+" is not supported", "write hugepages-2Mi or hugepages-1Gi")
	case q.Milli < 0 || q.Milli%(size*1000) != 0:
		c.fail(at, fmt.Sprintf("%s is not a whole number of pages", q), "write a multiple of "+scalar.Quantity{Milli: size * 1000}.String())
	}
}

// hugePageLimits checks what Kubernetes asks of the requests and limits of huge pages: they are the same, and cpu or memory
// is beside them.
func (c containerChecks) hugePageLimits(at string, r *spec.ResourceRequirements) {
	for _, name := range sortedKeys(r.Requests) {
		p := at + ".requests[" + showKey(name) + "]"
		limit, limited := r.Limits[name]
		switch {
		case !strings.HasPrefix(name, scalar.HugePagesPrefix):
		case !limited:
			c.fail(p, "has no limit", "write the same in limits: huge pages are kept for the container")
		case r.Requests[name].Milli < limit.Milli:
			c.fail(p, fmt.Sprintf("%s is less than the limit %s", r.Requests[name], limit), "write the same in both, or remove the request")
		}
	}
	beside := false
	for _, name := range []string{"cpu", "memory"} {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		beside = beside || limited || requested
	}
	if r.HugePages() != (scalar.HugePages{}) && !beside {
		c.fail(at+".limits", "has huge pages without cpu or memory", "write a limit or a request of one of these, too")
	}
}

// hugePageMedium checks an emptyDir in huge pages: the members must request such pages.
func hugePageMedium(c *checks, at string, e *spec.EmptyDir, pages scalar.HugePages) {
	both := pages.Of2Mi > 0 && pages.Of1Gi > 0
	switch size := scalar.HugePageSize(e.Medium); {
	case size > 0 && pages.Of(size) == 0, pages == scalar.HugePages{}:
		name := "hugepages-2Mi or hugepages-1Gi"
		if size > 0 {
			name = strings.ToLower(e.Medium)[:len(scalar.HugePagesPrefix)] + e.Medium[len(scalar.HugePagesPrefix):]
		}
		c.fail(at+".medium", "no container has such pages", "write "+name+" into resources.limits of those that use it")
	case size == 0 && both:
		c.fail(at+".medium", "the containers have pages of two sizes", "write "+scalar.MediumHugePages2Mi+" or "+scalar.MediumHugePages1Gi)
	}
	if e.SizeLimit != nil {
		c.warn(at+".sizeLimit", noEffect, "as in Kubernetes, where the huge pages that the containers request bound it")
	}
}
