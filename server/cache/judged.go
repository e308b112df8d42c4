package cache

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// JudgedReport is a report of the present life of an identity that may be stored as long as If holds:
// the session that said it, the member, and the report before it are as they were when it was judged.
type JudgedReport struct {
	Report *records.Report
	If     []store.Compare
}

// Holds: what the report was judged by is as it is in v.
func (r *JudgedReport) Holds(v View) bool {
	for _, g := range r.If {
		if v.Seen(g.Key) != g {
			return false
		}
	}
	return true
}

// WithReports is v as it would be with reports stored, at most one of an identity, each of which
// Holds. Revisions of keys are as they are: with these everything of it is still compared.
func WithReports(v View, reports []JudgedReport) View {
	v.judged = make(map[spec.Identity]*records.Report, len(reports))
	for i := range reports {
		v.judged[reports[i].Report.ID] = reports[i].Report
	}
	return v
}
