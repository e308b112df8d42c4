package containerdrt

import (
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/pkg/cap"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/enter"
)

// direct is how a container is entered without the runtime, from its spec. It refuses
// each option that it does not know to do as the runtime does.
func direct(id string, s *specs.Spec) (enter.Plan, error) {
	if what := unknown(s); what != "" {
		return enter.Plan{}, fmt.Errorf("its %s is not known here: %w", what, enter.ErrRefused)
	}
	p := s.Process
	plan := enter.Plan{
		Env: p.Env, Dir: p.Cwd, Umask: 0o022,
		UID: p.User.UID, GID: p.User.GID, Groups: p.User.AdditionalGids,
		Keyring: "_ses." + id, // runc's name for it
	}
	if p.User.Umask != nil {
		plan.Umask = *p.User.Umask
	}
	for _, set := range []struct {
		names []string
		to    *uint64
	}{
		{p.Capabilities.Bounding, &plan.Caps.Bounding}, {p.Capabilities.Effective, &plan.Caps.Effective},
		{p.Capabilities.Permitted, &plan.Caps.Permitted}, {p.Capabilities.Inheritable, &plan.Caps.Inheritable},
		{p.Capabilities.Ambient, &plan.Caps.Ambient},
	} {
		for _, name := range set.names {
			number := slices.Index(cap.Known(), name)
			if number < 0 {
				return enter.Plan{}, fmt.Errorf("capability %s is not known here: %w", name, enter.ErrRefused)
			}
			*set.to |= 1 << number
		}
	}
	for _, l := range p.Rlimits {
		kind, ok := rlimits[l.Type]
		if !ok {
			return enter.Plan{}, fmt.Errorf("limit %s is not known here: %w", l.Type, enter.ErrRefused)
		}
		plan.Limits = append(plan.Limits, enter.Limit{Kind: kind, Soft: l.Soft, Hard: l.Hard})
	}
	return plan, nil
}

// unknown names what makes a process differ from one that direct describes; "": nothing.
func unknown(s *specs.Spec) string {
	if s.Process == nil || s.Linux == nil || s.Process.Capabilities == nil {
		return "process without capabilities"
	}
	p, l := s.Process, s.Linux
	for _, c := range []struct {
		what string
		is   bool
	}{
		{"process that may gain privileges", !p.NoNewPrivileges},
		{"AppArmor profile", p.ApparmorProfile != ""},
		{"SELinux label", p.SelinuxLabel != ""},
		{"scheduler", p.Scheduler != nil},
		{"I/O priority", p.IOPriority != nil},
		{"processor affinity", p.ExecCPUAffinity != nil},
		{"mapping of users", len(l.UIDMappings)+len(l.GIDMappings) > 0},
		{"personality", l.Personality != nil},
		{"RDT class", l.IntelRdt != nil},
		{"memory policy", l.MemoryPolicy != nil},
		{"seccomp option", l.Seccomp != nil && (len(l.Seccomp.Flags) > 0 || l.Seccomp.ListenerPath != "")},
	} {
		if c.is {
			return c.what
		}
	}
	for _, ns := range l.Namespaces {
		switch ns.Type {
		case specs.PIDNamespace, specs.NetworkNamespace, specs.MountNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace:
		default:
			return "namespace " + string(ns.Type)
		}
	}
	return ""
}

var rlimits = map[string]int{
	"RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_DATA": unix.RLIMIT_DATA,
	"RLIMIT_STACK": unix.RLIMIT_STACK, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_RSS": unix.RLIMIT_RSS,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_LOCKS": unix.RLIMIT_LOCKS, "RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING,
	"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE, "RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO,
	"RLIMIT_RTTIME": unix.RLIMIT_RTTIME,
}
