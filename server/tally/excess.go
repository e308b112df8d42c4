package tally

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

// Excess is what a change asks for beyond what a quota allows.
type Excess struct {
	Quota    string
	Resource string
	// Used is what there is before the change, Asked what the change adds.
	Used, Asked, Hard int64
	// Unsaid: it would have members that do not say how much they ask for; the numbers are void.
	Unsaid bool
	// Unread: the quota cannot be read, so that nobody knows what it allows; the numbers are void.
	Unread bool
}

// String is what is wrong, for people.
func (e Excess) String() string {
	if e.Unread {
		return fmt.Sprintf("asks for more %s, and ResourceQuota %s cannot be read", e.Resource, e.Quota)
	}
	if e.Unsaid {
		return fmt.Sprintf("ResourceQuota %s bounds %s, and there is a container without it", e.Quota, e.Resource)
	}
	return fmt.Sprintf("exceeds ResourceQuota %s: %s: used %s, asked for %s more, hard %s", e.Quota, e.Resource,
		Text(e.Resource, e.Used), Text(e.Resource, e.Asked), Text(e.Resource, e.Hard))
}

// Fix is what to do about it, for people.
func (e Excess) Fix() string {
	if e.Unsaid {
		return "every container of a member must specify " + e.Resource + ", init containers too"
	}
	if e.Unread {
		return "have an admin apply or delete that quota"
	}
	return "ask for less, or have an admin raise the quota"
}

// Exceeded are the resources that after has more of than before, and more than a quota allows; and those that a quota bounds and
// of which more members than before do not say how much they ask for.
func Exceeded(before, after Totals, quotas []*records.QuotaRecord) (out []Excess) {
	for _, q := range quotas {
		hard := Hard(q)
		for _, resource := range slices.Sorted(maps.Keys(hard)) {
			used, now := before.Amounts[resource], after.Amounts[resource]
			e := Excess{Quota: string(q.Namespace) + "/" + q.Name, Resource: resource, Used: used, Asked: now - used, Hard: hard[resource]}
			switch {
			case after.Unsaid[resource] > before.Unsaid[resource]:
				e.Unsaid = true
				out = append(out, e)
			case now > used && now > e.Hard:
				out = append(out, e)
			}
		}
	}
	return out
}

// Hard are the most that q allows, by the names by which resources are counted. Of two names of one resource the lower number holds.
func Hard(q *records.QuotaRecord) map[string]int64 {
	out := map[string]int64{}
	for name, amount := range q.Spec.Hard {
		resource, known := quota.Resource(name)
		if !known { // of a later version, which refuses what exceeds it
			continue
		}
		n := quota.Amount(resource, amount)
		if other, twice := out[resource]; twice {
			n = min(n, other)
		}
		out[resource] = n
	}
	return out
}

// Status is what u comes to of what q bounds.
func Status(q *records.QuotaRecord, u Totals) quota.ResourceQuotaStatus {
	st := quota.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: map[string]scalar.Quantity{}}
	for name := range q.Spec.Hard {
		if resource, known := quota.Resource(name); known {
			st.Used[name] = Quantity(resource, u.Amounts[resource])
		}
	}
	return st
}

// Quantity is an amount of a resource as manifests write it; the largest that they can where it is more.
func Quantity(resource string, n int64) scalar.Quantity {
	switch {
	case quota.IsCPU(resource):
		return scalar.Quantity{Milli: n}
	case n > math.MaxInt64/1000:
		return scalar.Quantity{Milli: math.MaxInt64 / 1000 * 1000}
	}
	return scalar.Quantity{Milli: n * 1000}
}

// Text is an amount of a resource for people: 3, 500m, 64Mi.
func Text(resource string, n int64) string {
	if !quota.IsCPU(resource) && !quota.InBytes(resource) {
		return strconv.FormatInt(n, 10)
	}
	return Quantity(resource, n).String()
}
