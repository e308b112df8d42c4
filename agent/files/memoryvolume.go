package files

import (
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// MemoryVolumeBytes is the size of an emptyDir in memory; 0: it has no bound of its own. As in
// Kubernetes, that is the least of its sizeLimit and of the member's memory, for which its files count.
func MemoryVolumeBytes(s *spec.MemberSpec, e *spec.EmptyDir) int64 {
	limit := s.MemoryLimit()
	if e.SizeLimit == nil {
		return limit
	}
	if own := e.SizeLimit.Value(); limit == 0 || own > 0 && own < limit {
		return own
	}
	return limit
}

// Medium says in s where an emptyDir of a member is, and its bound. As in Kubernetes one in HugePages has the pages of the
// only size that the member requests.
func Medium(s *runtime.Scratch, m *spec.MemberSpec, e *spec.EmptyDir) {
	pages := m.HugePages()
	switch e.Medium {
	case spec.MediumMemory:
		s.Memory, s.SizeBytes = true, MemoryVolumeBytes(m, e)
	case scalar.MediumHugePages:
		s.HugePage = scalar.Page2Mi
		if pages.Of2Mi == 0 {
			s.HugePage = scalar.Page1Gi
		}
	default:
		s.HugePage = scalar.HugePageSize(e.Medium)
	}
	if s.HugePage > 0 {
		s.SizeBytes = pages.Of(s.HugePage)
	}
}
