package cache

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/tally"
	"github.com/stead-project/stead/spec"
)

// Quotas lists the ResourceQuotas of a namespace by name, and names those that cannot be read.
func Quotas(v View, ns spec.Namespace) (list []*records.QuotaRecord, unread []string) {
	for _, name := range slices.Sorted(maps.Keys(v.quotas[ns])) {
		if r := v.quotas[ns][name].record; r != nil {
			list = append(list, r)
		} else {
			unread = append(unread, name)
		}
	}
	return list, unread
}

// QuotaNamespaces lists the namespaces that have ResourceQuotas.
func QuotaNamespaces(v View) []spec.Namespace { return slices.Sorted(maps.Keys(v.quotas)) }

// HeldIn is what a namespace holds of all that ResourceQuotas count. It looks at every set, and is for namespaces that have one.
func HeldIn(v View, ns spec.Namespace) tally.Contents {
	h := tally.Contents{Sets: map[spec.SetName]tally.CountedSet{}, Claims: map[string]*records.ClaimRecord{}, Services: map[string]*records.ServiceRecord{},
		Configs: map[string]*records.ConfigRecord{}, Secrets: map[string]*records.SecretRecord{}}
	for ref, t := range v.sets {
		if ref.Namespace != ns {
			continue
		}
		if t.set.record != nil {
			h.Sets[ref.Name] = tally.CountedSet{Set: t.set.record, Current: t.current()}
		}
		for _, l := range t.slots {
			h.Volumes = append(h.Volumes, l.counted()...)
		}
	}
	maps.Copy(h.Claims, readable(v.claims[ns]))
	maps.Copy(h.Services, readable(v.services[ns]))
	for _, e := range v.configs {
		if e.record != nil && e.record.Namespace == ns {
			h.Configs[e.record.Name] = e.record
		}
	}
	for _, e := range v.secrets {
		if e.record != nil && e.record.Namespace == ns {
			h.Secrets[e.record.Name] = e.record
		}
	}
	return h
}

// current is the set's current revision; nil: none is known.
func (t *setState) current() *records.Revision {
	if t.status.record == nil {
		return nil
	}
	return t.revisions[t.status.record.CurrentRevision].record
}

// counted are the identity's volumes that are not on their way to the trash, and those that a person wants back from there.
func (l *slot) counted() (out []tally.CountedVolume) {
	for claim, e := range l.volumes {
		if e.record != nil && e.record.Fate != records.FateReclaiming {
			out = append(out, tally.CountedVolume{ID: l.view.ID, Claim: claim, Bytes: e.record.SizeBytes})
		}
	}
	for claim, e := range l.requests {
		if e.record == nil || e.record.Verb != records.VerbRestore || l.volumes[claim].mod != 0 {
			continue
		}
		bytes := int64(0)
		if r := l.reports[volumeKey{claim, e.record.Volume}].record; r != nil {
			bytes = r.SizeBytes
		}
		out = append(out, tally.CountedVolume{ID: l.view.ID, Claim: claim, Bytes: bytes})
	}
	return out
}
