package watchdog

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/program"
)

// Alive reports whether a watchdog runs on the directory. Any number may look at once.
func (d Dir) Alive() bool { return held(d.file("lock"), syscall.LOCK_SH) }

// Acks are the tokens, by member, that the watchdog which runs has acknowledged; nil when
// none runs, or has not said anything yet.
func (d Dir) Acks() map[string]string {
	pid, err := d.pid()
	if err != nil || !d.Alive() {
		return nil
	}
	var a acks
	if durable.GetJSON(d.file("acks"), &a) != nil || a.PID != pid {
		return nil
	}
	return a.Lives
}

func (d Dir) pid() (int, error) {
	text, err := os.ReadFile(d.file("lock"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// mostLog is the size above which what earlier watchdogs said is dropped.
const mostLog = 64 << 10

// Start starts path (stead-node) as the directory's watchdog and returns its process
// id. It is a process of its own, in a session of its own, that outlives us. Should one of
// the same program run already, it ends by itself; one of another program it replaces.
func Start(path string, d Dir) (int, error) {
	if err := d.Make(); err != nil {
		return 0, err
	}
	logs := d.file("watchdog.log")
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if st, err := os.Stat(logs); err == nil && st.Size() > mostLog {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(logs, flags, 0o600)
	if err != nil {
		return 0, fmt.Errorf("start the watchdog: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(path, "watchdog", string(d))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the watchdog: %w", err)
	}
	go func() { _ = cmd.Wait() }() // only so that no zombie stays while we live
	return cmd.Process.Pid, nil
}

// Dismiss asks the watchdog that runs to end, which it does once it guards nothing.
func (d Dir) Dismiss() { d.signal(unix.SIGTERM, "") }

// Foreign reports whether the watchdog that runs is of another program than the one at a path: of another release.
func (d Dir) Foreign(path string) bool {
	pid, err := d.pid()
	return err == nil && d.Alive() && !program.Runs(pid, path)
}

// Displace ends the watchdog that runs, if it is of another program than the one at a path; its successor waits for the lock.
func (d Dir) Displace(path string) { d.signal(unix.SIGKILL, path) }

// signal sends it to the watchdog that runs, unless that is of the program at a path; "": of any.
func (d Dir) signal(sig unix.Signal, but string) {
	pid, err := d.pid()
	if err != nil || !d.Alive() {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !bytes.HasSuffix(line, []byte("\x00watchdog\x00"+string(d)+"\x00")) || but != "" && program.Runs(pid, but) {
		return
	}
	_ = unix.PidfdSendSignal(fd, sig, nil, 0)
}
