package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec/quota"
)

type shownQuota = shown[quota.ResourceQuotaSpec, quota.ResourceQuotaStatus]

// quotaRow is in the order of the names, as kubectl has it.
func quotaRow(o *shownQuota) (cells, wide []any) {
	var each []string
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Hard)) {
		each = append(each, fmt.Sprintf("%s: %s/%s", name, o.Status.Used[name], o.Spec.Hard[name]))
	}
	return []any{o.Metadata.Name, strings.Join(each, ", ")}, []any{pairs(o.Metadata.Labels)}
}

// quota prints one as kubectl does.
func (d describer) quota(got *proto.Object) error {
	o, err := decode[quota.ResourceQuotaSpec, quota.ResourceQuotaStatus](got)
	if err != nil {
		return err
	}
	d.fields("Name", o.Metadata.Name, "Namespace", string(o.Metadata.Namespace))
	t := newTable(d.out, "RESOURCE", "USED", "HARD")
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Hard)) {
		t.row(name, o.Status.Used[name], o.Spec.Hard[name])
	}
	return t.flush()
}
