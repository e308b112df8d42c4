package files

import "github.com/stead-project/stead/spec"

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
