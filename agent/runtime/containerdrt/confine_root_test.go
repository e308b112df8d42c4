package containerdrt_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

// TestProfilesOfSeccompSeenFromInside: what /proc/self/status of the container's own process
// says, and of a probe's command, which is entered directly.
func TestProfilesOfSeccompSeenFromInside(t *testing.T) {
	h := newHost(t)
	h.cfg.SeccompDir = filepath.Join(h.dir, "seccomp")
	if err := os.Mkdir(h.cfg.SeccompDir, 0o755); err != nil {
		t.Fatal(err)
	}
	rt := h.open()
	t.Cleanup(func() { rt.Close() })
	h.load(rt, imageName, runtimetest.ImageConfig{})
	name := "umount.json"
	profile := `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["umount2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 99}]}`
	for _, c := range []struct {
		name    string
		profile spec.Profile
		want    []string
	}{
		{"default", spec.Profile{}, []string{"status Seccomp:\t2"}},
		{"unconfined", spec.Profile{Type: spec.ProfileUnconfined}, []string{"status Seccomp:\t0"}},
		{"file", spec.Profile{Type: spec.ProfileLocalhost, LocalhostProfile: &name}, []string{"status Seccomp:\t2", "call umount2 99"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			container := h.container("run")
			container.ID.Name, container.Seccomp = c.name, c.profile
			if c.name == "file" {
				if _, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"}); err != nil {
					t.Fatal(err)
				}
				err := rt.Create(t.Context(), container)
				if err == nil || !strings.Contains(err.Error(), filepath.Join(h.cfg.SeccompDir, name)) {
					t.Fatalf("without the file: %v", err)
				}
				if err := os.WriteFile(filepath.Join(h.cfg.SeccompDir, name), []byte(profile), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			h.start(rt, container)
			for _, bounded := range []bool{false, true} {
				seen := h.said(rt, container.ID, runtime.Exec{Command: []string{"/box", "cage"}, Bounded: bounded})
				for _, line := range c.want {
					if !slices.Contains(seen, line) {
						t.Errorf("bounded %v: lacks %q\n%s", bounded, line, strings.Join(seen, "\n"))
					}
				}
			}
			if err := rt.Remove(t.Context(), container.ID); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAPrivilegedContainerIsNotConfined, and one beside it is.
func TestAPrivilegedContainerIsNotConfined(t *testing.T) {
	h, rt := newLoadedNode(t)
	seen := map[bool][]string{}
	for _, privileged := range []bool{true, false} {
		c := h.container("run")
		c.ID.Name = map[bool]string{true: "privileged", false: "plain"}[privileged]
		c.Privileged = privileged
		h.start(rt, c)
		for _, bounded := range []bool{false, true} {
			seen[privileged] = h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "cage"}, Bounded: bounded})
			for line, want := range map[string]bool{"status Seccomp:\t0": privileged, "status Seccomp:\t2": !privileged, "status NoNewPrivs:\t0": true} {
				if slices.Contains(seen[privileged], line) != want {
					t.Errorf("privileged %v: %q: %v", privileged, line, !want)
				}
			}
		}
	}
	mounted := func(privileged bool, point, mode string) bool {
		return slices.ContainsFunc(seen[privileged], func(line string) bool {
			f := strings.Fields(line)
			return len(f) > 6 && f[0] == "mount" && f[5] == point && strings.HasPrefix(f[6], mode)
		})
	}
	if !mounted(true, "/sys", "rw") || !mounted(false, "/sys", "ro") {
		t.Error("/sys: want it writable for the privileged container alone")
	}
	if mounted(true, "/proc/sys", "ro") || !mounted(false, "/proc/sys", "ro") {
		t.Error("/proc/sys: want it read-only but for the privileged container")
	}
	readOnlyCgroups := func(privileged bool) bool {
		return slices.ContainsFunc(seen[privileged], func(line string) bool {
			return strings.HasPrefix(line, "mount ") && strings.Contains(line, " /sys/fs/cgroup") && strings.Contains(line, " ro,")
		})
	}
	if readOnlyCgroups(true) || !readOnlyCgroups(false) {
		t.Error("cgroups: want them read-only but for the privileged container")
	}
	if caps := func(s []string) string {
		return s[slices.IndexFunc(s, func(l string) bool { return strings.HasPrefix(l, "status CapBnd:") })]
	}; caps(seen[true]) == caps(seen[false]) {
		t.Errorf("both have %s", caps(seen[true]))
	}
}
