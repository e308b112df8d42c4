package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// settle is how long a lab is left alone before it counts as idle, and rest how
// long it is looked at then.
const (
	settle = 3 * time.Second
	rest   = 10 * time.Second
)

// reportIdle waits, then reports resident memory and processor time of the
// processes given, and the memory of all loggers and shims of the lab.
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
		each          int // processes of a member
	}{{"loggers", "stead-node", 2}, {"shims", "containerd-shim-runc-v2", 1}} {
		pids := l.programs(kind.program)
		if len(pids) != 3*kind.each {
			b.Fatalf("%d processes of %s for 3 members", len(pids), kind.program)
		}
		var sum float64
		for _, pid := range pids {
			sum += residentMiB(b, pid)
		}
		b.ReportMetric(sum, kind.name+"-MiB")
	}
}

// programs are the lab's processes that run a program of that file name.
func (l *Lab) programs(name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f) // it may have ended meanwhile
		program, _, _ := strings.Cut(string(line), "\x00")
		if filepath.Base(program) != name || !strings.Contains(string(line), l.Dir+"/") {
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

// cpuTime is what a process's threads have run so far, as the scheduler counts it.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("process %d has no threads: %v", pid, err)
	}
	var sum time.Duration
	for _, f := range files {
		text, _ := os.ReadFile(f) // a thread may have ended: what it ran is lost
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			ns, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(ns)
		}
	}
	return sum
}
