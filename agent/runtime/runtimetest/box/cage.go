package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cage prints all that a process can tell of how it is confined, a line each, beginning
// with what it is.
func cage() {
	// What the program itself or the moment decides is left out.
	for _, line := range lines("/proc/self/status") {
		name, _, _ := strings.Cut(line, ":")
		if slices.Contains([]string{
			"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
			"Seccomp_filters", "Umask", "TracerPid", "PPid", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "Cpus_allowed",
			"Mems_allowed", "Speculation_Store_Bypass", "CoreDumping", "THP_enabled",
		}, name) {
			fmt.Println("status", line)
		}
	}
	for _, ns := range []string{"cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "user", "uts"} {
		fmt.Println("namespace", ns, link("/proc/self/ns/"+ns))
	}
	for what, file := range map[string]string{
		"cgroup": "/proc/self/cgroup", "mount": "/proc/self/mountinfo", "limit": "/proc/self/limits",
		"oom": "/proc/self/oom_score_adj", "label": "/proc/self/attr/current",
		"personality": "/proc/self/personality", "login": "/proc/self/loginuid",
	} {
		for _, line := range lines(file) {
			fmt.Println(what, line)
		}
	}
	fmt.Println("root", link("/proc/self/root"), "directory", link("/proc/self/cwd"), "program", link("/proc/self/exe"))
	for _, e := range os.Environ() {
		fmt.Println("environment", e)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	check(err)
	for _, fd := range fds {
		// Pipes have numbers of their own; the last is the directory that is read; what Go
		// opened closes when a program is executed.
		to, _, _ := strings.Cut(link("/proc/self/fd/"+fd.Name()), ":")
		number, err := strconv.Atoi(fd.Name())
		check(err)
		flags, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			fmt.Println("descriptor", fd.Name(), to)
		}
	}
	sid, err := unix.Getsid(0)
	check(err)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	check(err)
	fmt.Println("session of its own", sid == os.Getpid(), "group", unix.Getpgrp() == os.Getpid(), "priority", nice)
	for _, c := range forbidden {
		_, _, errno := syscall.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], 0, 0, 0)
		fmt.Println("call", c.name, int(errno))
	}
}

// forbidden are calls that a container's filter or capabilities refuse, and some that
// nothing refuses; with arguments that do no harm where they are let through.
var forbidden = []struct {
	name   string
	number uintptr
	args   [3]uintptr
}{
	{"unshare", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWUSER}},
	{"mount", unix.SYS_MOUNT, [3]uintptr{}},
	{"umount2", unix.SYS_UMOUNT2, [3]uintptr{}},
	{"setns", unix.SYS_SETNS, [3]uintptr{^uintptr(0), 0}},
	{"bpf", unix.SYS_BPF, [3]uintptr{^uintptr(0), 0}},
	{"keyctl", unix.SYS_KEYCTL, [3]uintptr{unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2)}},
	{"add_key", unix.SYS_ADD_KEY, [3]uintptr{}},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uintptr{}},
	{"userfaultfd", unix.SYS_USERFAULTFD, [3]uintptr{^uintptr(0)}},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [3]uintptr{}},
	{"kexec_load", unix.SYS_KEXEC_LOAD, [3]uintptr{^uintptr(0), ^uintptr(0)}},
	{"init_module", unix.SYS_INIT_MODULE, [3]uintptr{}},
	{"personality", unix.SYS_PERSONALITY, [3]uintptr{0x0400000}},
	{"socket of VSOCK", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
	{"clock_settime", unix.SYS_CLOCK_SETTIME, [3]uintptr{^uintptr(0)}},
	{"chroot", unix.SYS_CHROOT, [3]uintptr{}},
	{"sethostname", unix.SYS_SETHOSTNAME, [3]uintptr{0, ^uintptr(0)}},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [3]uintptr{}},
	{"openat2", unix.SYS_OPENAT2, [3]uintptr{}},
	{"quotactl", unix.SYS_QUOTACTL, [3]uintptr{}},
	{"a call that no kernel has", 4096, [3]uintptr{}},
}

func lines(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func link(path string) string {
	to, err := os.Readlink(path)
	if err != nil {
		return err.Error()
	}
	return to
}
