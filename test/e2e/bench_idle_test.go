package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long a lab is left alone before it counts as idle, and rest how
// long it is looked at then.
const (
	settle = 3 * time.Second
	rest   = 10 * time.Second
)

// reportIdle waits, then reports resident memory and processor time of the
// processes given, and the memory of the lab's loggers, watchdog and shims.
func (l *Lab) reportIdle(b *testing.B, of map[string]*process) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	time.Sleep(settle)
	before := map[string]time.Duration{}
	for name, p := range of {
		before[name] = cpuTime(b, p.cmd.Process.Pid)
	}
	time.Sleep(rest)
	for name, p := range of {
		used := cpuTime(b, p.cmd.Process.Pid) - before[name]
		b.ReportMetric(100*used.Seconds()/rest.Seconds(), name+"-%cpu")
		b.ReportMetric(residentMiB(b, p.cmd.Process.Pid), name+"-MiB")
	}
	for _, kind := range []struct {
		name, program string
		verbs         []string
		count         int // of processes, for 3 members on one host
	}{
		{"loggers", "stead-node", []string{"logger", "keeper", "writer", "again"}, 6},
		{"watchdog", "stead-node", []string{"watchdog"}, 1},
		{"shims", "containerd-shim-runc-v2", nil, 3},
	} {
		pids := l.programs(kind.program, kind.verbs...)
		if len(pids) != kind.count {
			b.Fatalf("%d processes of %s %v, want %d", len(pids), kind.program, kind.verbs, kind.count)
		}
		var sum float64
		for _, pid := range pids {
			sum += residentMiB(b, pid)
		}
		b.ReportMetric(sum, kind.name+"-MiB")
	}
}

// programs are the lab's processes that run a program of that file name, with one of the
// verbs; none: with any.
func (l *Lab) programs(name string, verbs ...string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f) // it may have ended meanwhile
		argv := strings.Split(string(line), "\x00")
		if filepath.Base(argv[0]) != name || !strings.Contains(string(line), l.Dir+"/") {
			continue
		}
		if len(verbs) > 0 && (len(argv) < 2 || !slices.Contains(verbs, argv[1])) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// residentMiB is a process's resident memory, pages of files included.
func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("process %d has no VmRSS", pid)
	return 0
}

// cpuTime is what a process has run so far, as the scheduler counts it, with threads that have ended.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	const scheduled = 2 // CPUCLOCK_SCHED: the clock of a process, as clock_getcpuclockid(3) makes it
	var run unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &run); err != nil {
		b.Fatalf("processor time of process %d: %v", pid, err)
	}
	return time.Duration(run.Nano())
}
