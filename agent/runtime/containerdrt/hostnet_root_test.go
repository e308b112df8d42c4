package containerdrt_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

// TestAContainerInTheNetworkOfItsHost: that alone is the host's, a process that is let in later is there, too, another
// agent finds it so, and its end leaves the host's as it is.
func TestAContainerInTheNetworkOfItsHost(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("run")
	box, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: c.ID.ID, Token: c.Token, Hostname: "n1", HostNetwork: true})
	if err != nil || !box.HostNetwork {
		t.Fatalf("%+v, %v", box, err)
	}
	if err := rt.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := rt.Start(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	same := func(pin, kind string) bool {
		a, err := os.Stat(filepath.Join(filepath.Dir(box.NetNS), pin))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.Stat("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		return os.SameFile(a, b)
	}
	if !same("net", "net") || same("ipc", "ipc") || same("uts", "uts") {
		t.Errorf("the host's: net %v, ipc %v, uts %v; want the first", same("net", "net"), same("ipc", "ipc"), same("uts", "uts"))
	}
	own, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	said := h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "read", "/proc/self/net/dev"}})
	if want := strings.Count(string(own), "\n"); len(said) != want {
		t.Errorf("it has links\n%v\nthe host\n%s", said, own)
	}
	again := h.open()
	defer again.Close()
	if boxes, err := again.Sandboxes(t.Context()); err != nil || !slices.Contains(boxes, box) {
		t.Errorf("another agent finds %+v, %v", boxes, err)
	}
	if err := rt.KillAll(t.Context(), c.ID.ID); err != nil {
		t.Fatal(err)
	}
	if err := rt.Remove(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if err := rt.RemoveSandbox(t.Context(), c.ID.ID); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile("/proc/self/net/dev"); err != nil || len(now) == 0 {
		t.Errorf("the host's links: %q, %v", now, err)
	}
}
