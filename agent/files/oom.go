package files

import (
	"math"

	"github.com/stead-project/stead/spec"
)

// Values of oom_score_adj, as Kubernetes' GetContainerOOMScoreAdjust has them: the kernel ends those with the highest
// score first when the host has no memory left.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
)

// oomScore is the oom_score_adj of a container on a host with that much memory for members, in bytes: the more of
// it the container requests, the later the kernel ends it. A sidecar is not ended before the main containers.
func oomScore(s *spec.MemberSpec, c *spec.Container, host int64) int {
	switch s.QOS() {
	case spec.QOSGuaranteed:
		return oomGuaranteed
	case spec.QOSBestEffort:
		return oomBestEffort
	}
	requested := memoryRequest(c)
	if c.Role() == spec.RoleSidecar {
		least := int64(math.MaxInt64)
		for i := range s.Containers {
			least = min(least, memoryRequest(&s.Containers[i]))
		}
		requested = max(requested, least)
	}
	score := oomBestEffort
	if host > 0 {
		score -= int(min(1000*float64(requested)/float64(host), 1000))
	}
	return min(max(score, oomBestEffort+oomGuaranteed), oomBestEffort-1)
}

func memoryRequest(c *spec.Container) int64 {
	q := c.Resources.Request("memory")
	return q.Value()
}
