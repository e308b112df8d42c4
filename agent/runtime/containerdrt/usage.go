package containerdrt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// Usage reads it from the cgroups of the containers that have processes, and the host's from /proc,
// as Kubernetes does.
func (r *sandboxes) Usage(ctx context.Context) (out runtime.Usage, err error) {
	defer wrap.Error(&err, "measure what is used")
	out.Containers = map[runtime.ContainerID]runtime.Used{}
	members, err := r.cgroups.Children("")
	if err != nil {
		return out, err
	}
	for _, dir := range members {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		id, ok := memberOf(dir)
		if !ok {
			continue // a watchdog's
		}
		containers, err := r.cgroups.Children(dir)
		if err != nil {
			return out, err
		}
		for _, name := range containers {
			if name == pauseName {
				continue
			}
			path := dir + "/" + name
			if empty, err := r.cgroups.Empty(path); err != nil || empty {
				continue // it ends, or has ended
			}
			var used runtime.Used
			if used.CPU, used.MemoryBytes, err = r.cgroups.Used(path); err != nil {
				return out, err
			}
			out.Containers[runtime.ContainerID{ID: id, Name: name}] = used
		}
	}
	out.Host, err = hostUsed("/proc")
	return out, err
}

// memberOf is the identity whose cgroup has this name, as memberDir makes it.
func memberOf(dir string) (id spec.Identity, ok bool) {
	ns, member, _ := strings.Cut(dir, ".")
	set, ordinal, err := spec.ParseMemberName(member)
	return spec.Identity{Namespace: spec.Namespace(ns), Set: set, Ordinal: ordinal}, err == nil && ns != ""
}

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// hostUsed is what all processes of the host have used: neither idle time nor free memory, nor
// pages of files that were not used lately.
func hostUsed(proc string) (used runtime.Used, err error) {
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return used, err
	}
	first, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := strings.Fields(string(first))
	if len(fields) < 9 || fields[0] != "cpu" {
		return used, fmt.Errorf("%s/stat starts with %q", proc, first)
	}
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user, nice, system, irq, softirq, steal
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return used, fmt.Errorf("%s/stat: %w", proc, err)
		}
		used.CPU += time.Duration(n) * tick
	}
	info, err := os.ReadFile(proc + "/meminfo")
	if err != nil {
		return used, err
	}
	kib := map[string]int64{}
	for line := range strings.Lines(string(info)) {
		name, rest, _ := strings.Cut(line, ":")
		if f := strings.Fields(rest); len(f) == 2 && f[1] == "kB" {
			if kib[name], err = strconv.ParseInt(f[0], 10, 64); err != nil {
				return used, fmt.Errorf("%s/meminfo: %w", proc, err)
			}
		}
	}
	used.MemoryBytes = max(kib["MemTotal"]-kib["MemFree"]-kib["Inactive(file)"], 0) << 10
	return used, nil
}
