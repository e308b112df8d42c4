package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// brood leaves a child of one's own session, one that left it, and one whose parent has
// left it, too, and is gone: a daemon.
func brood() {
	for _, attr := range []*syscall.SysProcAttr{nil, {Setsid: true}} {
		_, err := syscall.ForkExec("/box", []string{"/box", "chick"}, &syscall.ProcAttr{Sys: attr, Env: os.Environ(), Files: []uintptr{0, 1, 2}})
		check(err)
	}
	if len(os.Args) > 2 { // a parent of daemons
		return
	}
	pid, err := syscall.ForkExec("/box", []string{"/box", "litter", "once"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Setsid: true}, Env: os.Environ(), Files: []uintptr{0, 1, 2},
	})
	check(err)
	_, err = syscall.Wait4(pid, nil, 0, nil)
	check(err)
	for chicks() < 4 { // all have begun
		time.Sleep(time.Millisecond)
	}
	check(os.WriteFile("/tmp/brood", nil, 0o644))
}

func chicks() int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(err)
	n := 0
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(text), "/box\x00chick\x00") {
			n++
		}
	}
	return n
}
