package containerdrt_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

// TestSysctlsCountForTheMemberAlone: the member reads what it asked for, in each container, also
// after one was made again; the host keeps its own.
func TestSysctlsCountForTheMemberAlone(t *testing.T) {
	const file, shm = "/proc/sys/net/ipv4/tcp_fin_timeout", "/proc/sys/kernel/shm_rmid_forced"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, rt := newLoadedNode(t)
	c := h.container("run")
	c.Sysctls = map[string]string{"net.ipv4.tcp_fin_timeout": "17", "kernel.shm_rmid_forced": "1"}
	for attempt := range 2 {
		c.Attempt = attempt
		h.start(rt, c)
		got := h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "read", file}})[0] +
			" " + h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "read", shm}})[0]
		if got != "17 1" {
			t.Errorf("the member reads %q", got)
		}
		if err := rt.KillAll(t.Context(), db0); err != nil {
			t.Fatal(err)
		}
		if err := rt.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(before) {
		t.Errorf("the host reads %q, %v; want %q", now, err, before)
	}
	c.Sysctls = map[string]string{"kernel.panic": "1"} // of the host; no manifest brings it here
	if err := rt.Create(t.Context(), c); err == nil {
		err = rt.Start(t.Context(), c.ID)
		if err == nil || !strings.Contains(err.Error(), "kernel.panic") {
			t.Errorf("a parameter of the host: %v", err)
		}
	}
}
