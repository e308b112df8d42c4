// Command stead-node is the part of Stead that must outlive it: the logger of a
// container, started by containerd's shim, and the watchdog of the node's guarded
// lives. And it is the helper that enters containers for probes, and the first process of the pid
// namespace that a member's containers share. It links the standard
// library and x/sys/unix only, so that two processes a container cost next to nothing,
// and stays at a versioned path, because a logger that ends kills its container.
//
//	stead-node logger CONFIG   copy fd 3 (stdout) and fd 4 (stderr) to log files
//	stead-node watchdog DIR    end guarded lives recorded in DIR past their deadline
//	stead-node enter           run a command in a container, as the agent says on fd 3
//	stead-node pause           be the first process of a member's pid namespace
//	stead-node version         print the version
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/stead-project/stead/agent/enter"
	"github.com/stead-project/stead/agent/logs"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run does one verb and returns the exit code: 0 done, 1 a stream could not be read to
// its end, a life could not be guarded, or another watchdog runs, 2 wrong use.
func run(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == "version":
		fmt.Fprintln(stdout, version)
		return 0
	case len(args) == 2 && slices.Contains([]string{"logger", "keeper", "writer", "again"}, args[0]):
		return logger(args[0], args[1], stderr)
	case len(args) == 2 && args[0] == "watchdog":
		return serveWatchdog(args[1], stderr)
	case len(args) == 1 && args[0] == "pause":
		return pause(stderr)
	case len(args) == 1 && args[0] == "enter":
		return enter.Serve(context.Background())
	}
	fmt.Fprintln(stderr, "usage: stead-node logger CONFIG | watchdog DIR | enter | pause | version")
	return 2
}

// logger runs until both streams have ended. The shim gives it the container's
// stdout as fd 3 and stderr as fd 4, and waits until fd 5 is closed. To a half that
// the other half started, fd 5 is the socket between them.
func logger(role, arg string, stderr io.Writer) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	cfg, err := logs.ParseConfig(arg)
	if err != nil {
		fmt.Fprintln(stderr, "stead-node logger:", err)
		return 2
	}
	h := &half{cfg: cfg, arg: arg, first: role != "again", stderr: stderr}
	h.streams = [2]*os.File{os.NewFile(3, "stdout"), os.NewFile(4, "stderr")}
	guard := lifeGuard(cfg)
	if role != "logger" {
		if guard != nil {
			go guard.Guard()
		}
		peer := os.NewFile(5, "peer")
		if role == "keeper" {
			return h.keep(peer)
		}
		return h.write(peer)
	}
	if guard != nil {
		// To the shim the end of this process is like fd 5 closed; the agent sees that the life
		// is not guarded.
		if err := guard.Check(); err != nil {
			fmt.Fprintln(stderr, "stead-node logger:", err)
			return 1
		}
		go guard.Guard()
	}
	// Before anything is started: while fd 5 is open the container's start hangs.
	if err := syscall.Close(5); err != nil {
		fmt.Fprintln(stderr, "stead-node logger: close fd 5:", err)
		return 2
	}
	return h.keep(nil)
}
