package containerdrt

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/enter"
)

// plain is a spec as ours are.
func plain() *specs.Spec {
	mask := uint32(0o077)
	return &specs.Spec{
		Process: &specs.Process{
			User: specs.User{UID: 999, GID: 998, AdditionalGids: []uint32{5, 998}, Umask: &mask},
			Env:  []string{"A=1"}, Cwd: "/data", NoNewPrivileges: true,
			Capabilities: &specs.LinuxCapabilities{
				Bounding: []string{"CAP_CHOWN", "CAP_CHECKPOINT_RESTORE"}, Effective: []string{"CAP_SYS_CHROOT"},
				Permitted: []string{"CAP_SETPCAP"}, Inheritable: []string{"CAP_BPF"}, Ambient: []string{"CAP_KILL"},
			},
			Rlimits: []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 10, Hard: 20}},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.CgroupNamespace}},
			Seccomp:    &specs.LinuxSeccomp{},
		},
	}
}

func TestASpecBecomesAPlanToEnter(t *testing.T) {
	got, err := direct("x", plain())
	want := enter.Plan{
		Env: []string{"A=1"}, Dir: "/data", UID: 999, GID: 998, Groups: []uint32{5, 998}, Umask: 0o077, NoNewPrivileges: true, Keyring: "_ses.x",
		Caps: enter.Caps{
			Bounding: 1<<unix.CAP_CHOWN | 1<<unix.CAP_CHECKPOINT_RESTORE, Effective: 1 << unix.CAP_SYS_CHROOT,
			Permitted: 1 << unix.CAP_SETPCAP, Inheritable: 1 << unix.CAP_BPF, Ambient: 1 << unix.CAP_KILL,
		},
		Limits: []enter.Limit{{Kind: unix.RLIMIT_NOFILE, Soft: 10, Hard: 20}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	s := plain()
	s.Process.NoNewPrivileges, want.NoNewPrivileges = false, false
	if got, err := direct("x", s); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("one that may gain privileges: got  %+v, %v\nwant %+v", got, err, want)
	}
}

// TestWhatIsNotKnownIsLeftToTheRuntime: an option that entering does not take over would
// be confinement that is missing.
func TestWhatIsNotKnownIsLeftToTheRuntime(t *testing.T) {
	for name, change := range map[string]func(*specs.Spec){
		"AppArmor":        func(s *specs.Spec) { s.Process.ApparmorProfile = "x" },
		"SELinux":         func(s *specs.Spec) { s.Process.SelinuxLabel = "x" },
		"scheduler":       func(s *specs.Spec) { s.Process.Scheduler = &specs.Scheduler{} },
		"I/O priority":    func(s *specs.Spec) { s.Process.IOPriority = &specs.LinuxIOPriority{} },
		"affinity":        func(s *specs.Spec) { s.Process.ExecCPUAffinity = &specs.CPUAffinity{} },
		"users":           func(s *specs.Spec) { s.Linux.UIDMappings = []specs.LinuxIDMapping{{}} },
		"groups":          func(s *specs.Spec) { s.Linux.GIDMappings = []specs.LinuxIDMapping{{}} },
		"personality":     func(s *specs.Spec) { s.Linux.Personality = &specs.LinuxPersonality{} },
		"RDT":             func(s *specs.Spec) { s.Linux.IntelRdt = &specs.LinuxIntelRdt{} },
		"memory policy":   func(s *specs.Spec) { s.Linux.MemoryPolicy = &specs.LinuxMemoryPolicy{} },
		"seccomp flags":   func(s *specs.Spec) { s.Linux.Seccomp.Flags = []specs.LinuxSeccompFlag{"x"} },
		"seccomp agent":   func(s *specs.Spec) { s.Linux.Seccomp.ListenerPath = "x" },
		"user namespace":  func(s *specs.Spec) { s.Linux.Namespaces[0].Type = specs.UserNamespace },
		"time namespace":  func(s *specs.Spec) { s.Linux.Namespaces[0].Type = specs.TimeNamespace },
		"no capabilities": func(s *specs.Spec) { s.Process.Capabilities = nil },
		"new capability":  func(s *specs.Spec) { s.Process.Capabilities.Bounding[0] = "CAP_X" },
		"new limit":       func(s *specs.Spec) { s.Process.Rlimits[0].Type = "RLIMIT_X" },
		"no process":      func(s *specs.Spec) { s.Process = nil },
	} {
		s := plain()
		change(s)
		if p, err := direct("x", s); !errors.Is(err, enter.ErrRefused) {
			t.Errorf("%s: got %+v, %v; want it refused", name, p, err)
		}
	}
}

func TestABroodIsFoundBySessionDescentAndMark(t *testing.T) {
	type p struct{ parent, session int }
	all := map[int]p{
		1: {0, 1}, 2: {1, 1}, // the container's own
		10: {0, 10}, 11: {10, 10}, // the leader and its child
		12: {11, 12}, 13: {12, 13}, // left the session, twice
		14: {1, 14}, 15: {14, 15}, // a daemon with the mark, and its child
		16: {1, 10}, // an orphan of the session
	}
	pids := append(slices.Sorted(maps.Keys(all)), 0)
	lineage := func(pid int) (int, int) { return all[pid].parent, all[pid].session }
	marked := func(pid int) bool { return pid == 14 }
	if got, want := descendants(pids, 10, lineage, marked), []int{10, 11, 12, 13, 14, 15, 16}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := descendants(pids, 0, lineage, marked), []int{14, 15}; !slices.Equal(got, want) {
		t.Errorf("of an earlier agent: got %v, want %v", got, want)
	}
}
