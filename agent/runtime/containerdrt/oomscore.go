package containerdrt

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/pkg/cap"
)

// leastOOMScore is the lowest oom_score_adj that a container can be given here: without CAP_SYS_RESOURCE
// the kernel refuses to set one below that of the process itself. runc and the daemon are taken to have the rights of
// this process.
var leastOOMScore = sync.OnceValue(func() int {
	const lowest = -1000
	have, err := cap.Current()
	if err != nil || slices.Contains(have, "CAP_SYS_RESOURCE") {
		return lowest
	}
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return lowest
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return lowest
	}
	return own
})
