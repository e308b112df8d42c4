// Command stead-node is the part of Stead that must outlive it: the logger of a
// container, started by containerd's shim. It links the standard library only, so
// that one process a container costs next to nothing, and stays at a versioned
// path, because a logger that ends kills its container.
//
//	stead-node logger CONFIG   copy fd 3 (stdout) and fd 4 (stderr) to log files
//	stead-node version         print the version
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/stead-project/stead/agent/logs"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run does one verb and returns the exit code: 0 done, 1 a stream could not be
// read to its end, 2 wrong use.
func run(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == "version":
		fmt.Fprintln(stdout, version)
		return 0
	case len(args) == 2 && args[0] == "logger":
		return logger(args[1], stderr)
	}
	fmt.Fprintln(stderr, "usage: stead-node logger CONFIG | version")
	return 2
}

// logger runs until both streams have ended. The shim gives it the container's
// stdout as fd 3 and stderr as fd 4, and waits until fd 5 is closed.
func logger(arg string, stderr io.Writer) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	cfg, err := logs.ParseConfig(arg)
	if err != nil {
		fmt.Fprintln(stderr, "stead-node logger:", err)
		return 2
	}
	// Before the disk is touched: while fd 5 is open the container's start hangs.
	if err := syscall.Close(5); err != nil {
		fmt.Fprintln(stderr, "stead-node logger: close fd 5:", err)
		return 2
	}
	w := logs.NewWriter(cfg)
	defer w.Close()
	streams := [...]string{"stdout", "stderr"}
	failed := make([]error, len(streams))
	var group sync.WaitGroup
	for i, name := range streams {
		in := os.NewFile(uintptr(3+i), name)
		group.Go(func() { failed[i] = w.Copy(name, in) })
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			fmt.Fprintln(stderr, "stead-node logger:", err)
			return 1
		}
	}
	return 0
}
