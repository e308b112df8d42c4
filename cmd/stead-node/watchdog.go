package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/internal/notify"
)

// serveWatchdog guards the lives recorded in dir. Signals end it only while there are
// none; an idle one whose agent is gone ends within a minute.
func serveWatchdog(dir string, stderr io.Writer) int {
	if !filepath.IsAbs(dir) {
		fmt.Fprintf(stderr, "stead-node watchdog: %s must be an absolute path\n", dir)
		return 2
	}
	protectFromPressure()
	runFirst()
	say := func(line string) {
		fmt.Fprintf(stderr, "%s stead-node watchdog: %s\n", time.Now().UTC().Format(time.RFC3339), line)
	}
	tree := cgroup.New(cgroup.Root, "/")
	w := watchdog.Watchdog{
		Dir: watchdog.Dir(dir), Clock: watchdog.BootTime, Empty: tree.Empty, Kill: tree.KillOnce, Say: say,
		Down: shutsDown, Wake: changes(dir),
	}
	if self, err := os.Executable(); err == nil {
		w.Displace = func() { w.Dir.Displace(self) }
	}
	quit := make(chan struct{})
	go waitForQuit(quit)
	if err := w.Run(context.Background(), quit); err != nil {
		say(err.Error())
		return 1
	}
	return 0
}

// waitForQuit sends on quit when a signal asks this process to end or its parent is gone.
func waitForQuit(quit chan<- struct{}) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	parent := os.Getppid()
	orphan := time.NewTicker(time.Minute)
	for {
		select {
		case <-signals:
		case <-orphan.C:
			if os.Getppid() == parent {
				continue
			}
		}
		quit <- struct{}{}
	}
}

// shutsDown reports that systemd has stopped all units of this host, and asks what is left to end: it then waits a
// minute and a half for that.
func shutsDown() bool {
	first, err := os.ReadFile("/proc/1/comm")
	return err == nil && string(first) == "systemd-shutdow\n" // the kernel cuts names after 15 bytes
}

// protectFromPressure makes this process the last that a machine short of memory or CPU
// ends or keeps waiting. Where that is not permitted it does without: nothing here is
// needed for being right.
func protectFromPressure() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	// What is touched from now on stays in memory; our program is touched now. Without
	// ONFAULT all that Go only reserves would be.
	_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	self, err := os.Executable()
	maps, err2 := os.ReadFile("/proc/self/maps")
	if err != nil || err2 != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && strings.HasSuffix(strings.TrimSpace(line), self) {
			_, _, _ = syscall.Syscall(syscall.SYS_MLOCK, from, to-from, 0)
		}
	}
}

// runFirst gives this process's threads, and those that they make, real-time priority
// where that is permitted: a machine under pressure is when it matters. Loggers have none,
// since members decide how much they have to do.
func runFirst() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
		}
	}
}

// changes receives when a file comes into the directories of guarded lives; nil: the
// kernel does not report them.
func changes(dir string) <-chan struct{} {
	if err := watchdog.Dir(dir).Make(); err != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(dir, "lives"), unix.IN_MOVED_TO|unix.IN_DELETE); err != nil {
		unix.Close(fd)
		return nil
	}
	changed := notify.New()
	go func() { // as long as the process
		buf := make([]byte, 64<<10)
		for {
			if n, err := unix.Read(fd, buf); n <= 0 && err != unix.EINTR {
				return
			}
			changed.Notify()
		}
	}()
	return changed.C()
}

// lifeGuard is a logger's guard of its life; nil: the life is not guarded.
func lifeGuard(cfg logs.Config) *watchdog.Logger {
	if cfg.Guard == "" {
		return nil
	}
	tree := cgroup.New(cgroup.Root, "/")
	return &watchdog.Logger{
		Record: cfg.Guard, Token: cfg.Token(), Container: filepath.Base(cfg.Dir), Run: cfg.Run,
		Clock: watchdog.BootTime, Empty: tree.Empty, Kill: tree.KillOnce,
	}
}
