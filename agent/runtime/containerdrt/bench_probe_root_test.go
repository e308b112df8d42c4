package containerdrt_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// BenchmarkProbe is what one exec probe costs the host: the processor time of the agent
// (this process), the daemon, its shims, and all that they start for it, the command
// itself included; entered, as it is done, and by the runtime. cpu-ms is of each one.
func BenchmarkProbe(b *testing.B) {
	h := newHost(b)
	rt := h.open()
	b.Cleanup(func() { rt.Close() })
	h.load(rt, imageName, runtimetest.ImageConfig{})
	c := h.container("run")
	h.start(rt, c)
	for name, bounded := range map[string]bool{"entered": true, "runtime": false} {
		b.Run(name, func(b *testing.B) {
			one := func() {
				code, err := rt.Exec(b.Context(), c.ID, runtime.Exec{Command: []string{"/box", "exit", "0"}, Bounded: bounded})
				if err != nil || code != 0 {
					b.Fatalf("code %d, %v", code, err)
				}
			}
			one() // the first looks at the container
			before := h.processor()
			for b.Loop() {
				one()
			}
			reportMillis(b, h.processor()-before, b.N, "cpu-ms")
		})
	}
}

// processor is the time that all of the host's processes have used, with those that
// ended and this one.
func (h *host) processor() time.Duration {
	h.t.Helper()
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			h.t.Fatal(err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, p := range h.processes() {
		var pid int
		if _, err := fmt.Sscanf(p, "process /proc/%d/", &pid); err != nil {
			h.t.Fatal(err)
		}
		if pid == os.Getpid() {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has just ended
		}
		f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		for _, field := range f[11:15] { // utime, stime, and those of its children
			ticks, err := strconv.Atoi(string(field))
			if err != nil {
				h.t.Fatal(err)
			}
			total += time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 on all Linux
		}
	}
	return total
}
