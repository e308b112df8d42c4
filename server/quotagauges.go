package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/tally"
	"github.com/stead-project/stead/spec/quota"
)

var (
	quotaUsedGauge = prometheus.NewDesc("stead_quota_used", "What a namespace uses of what a ResourceQuota bounds: processors, bytes, or a number.", []string{"namespace", "quota", "resource"}, nil)
	quotaHardGauge = prometheus.NewDesc("stead_quota_hard", "The most that a ResourceQuota allows, likewise.", []string{"namespace", "quota", "resource"}, nil)
)

// quotas tells of each resource that a quota bounds, by the name by which it is counted.
func (g *gauges) quotas(tell func(*prometheus.Desc, float64, ...string)) {
	type row struct {
		labels     []string
		used, hard float64
	}
	var rows []row
	g.s.cache.Look(func(v cache.View) {
		for _, ns := range cache.QuotaNamespaces(v) {
			held := cache.HeldIn(v, ns)
			used := held.Totals()
			quotas, _ := cache.Quotas(v, ns)
			for _, q := range quotas {
				for resource, hard := range tally.Hard(q) {
					rows = append(rows, row{[]string{string(ns), q.Name, resource}, baseUnits(resource, used.Amounts[resource]), baseUnits(resource, hard)})
				}
			}
		}
	})
	for _, r := range rows {
		tell(quotaUsedGauge, r.used, r.labels...)
		tell(quotaHardGauge, r.hard, r.labels...)
	}
}

// baseUnits is an amount in processors, bytes, or a number.
func baseUnits(resource string, n int64) float64 {
	if quota.IsCPU(resource) {
		return float64(n) / 1000
	}
	return float64(n)
}
