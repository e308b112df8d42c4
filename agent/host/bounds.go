package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/stead-project/stead/agent/cgroup"
)

// minProcesses is what a container needs to be of any use.
const minProcesses = 16

// bounds are what all members of this host may use together, so that agent, daemon and
// people who log in can continue when they want everything; total is its memory in bytes.
func (o *Options) bounds(total int64) (cgroup.Bounds, error) {
	if o.Reserve >= total {
		return cgroup.Bounds{}, OptionError{fmt.Errorf("--reserve-memory-bytes %d: this host has %d", o.Reserve, total)}
	}
	processes, err := mostProcesses()
	return cgroup.Bounds{Processes: processes / 2, MemoryBytes: membersMemory(total, o.Reserve)}, err
}

// membersMemory is what members may use of a host's memory; 0: all.
func membersMemory(total, reserve int64) int64 {
	switch {
	case reserve < 0:
		return 0
	case reserve == 0:
		reserve = min(max(total/20, 512<<20), total/4)
	}
	return total - reserve
}

// mostProcesses is how many processes and threads the kernel lets all of the host have.
func mostProcesses() (int64, error) {
	most := int64(0)
	for _, name := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		if most == 0 || n < most {
			most = n
		}
	}
	return most, nil
}

// memoryBytes is the machine's memory, from /proc/meminfo, without its huge pages.
func memoryBytes() (int64, error) {
	_, apart, err := hugePages(hugePagesDir)
	if err != nil {
		return 0, err
	}
	total, _, err := memoryLeft()
	return total - apart, err
}
