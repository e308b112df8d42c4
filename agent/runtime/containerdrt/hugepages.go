package containerdrt

import (
	"fmt"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/spec/scalar"
)

// hostPageSizes are the sizes of huge pages that the kernel has, in KiB.
func hostPageSizes() (sizes []int64) {
	dirs, err := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-*kB")
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		var kib int64
		if _, err := fmt.Sscanf(filepath.Base(d), "hugepages-%dkB", &kib); err == nil {
			sizes = append(sizes, kib)
		}
	}
	return sizes
}

// pageLimits are the limits for all sizes of the host: of those that the container does not request it gets none, as in
// Kubernetes.
func pageLimits(kib []int64, pages scalar.HugePages) (limits []specs.LinuxHugepageLimit) {
	for _, size := range kib {
		l := specs.LinuxHugepageLimit{Pagesize: fmt.Sprintf("%dKB", size)}
		switch {
		case size >= 1<<20:
			l.Pagesize = fmt.Sprintf("%dGB", size>>20)
		case size >= 1<<10:
			l.Pagesize = fmt.Sprintf("%dMB", size>>10)
		}
		if bytes := size << 10; bytes == scalar.Page2Mi || bytes == scalar.Page1Gi {
			l.Limit = uint64(pages.Of(bytes))
		}
		limits = append(limits, l)
	}
	return limits
}
