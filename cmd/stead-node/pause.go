package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// pause is the first process of a pid namespace that the containers of a member share: it waits for
// the processes whose parents have ended, so that none stays, and returns on SIGTERM or SIGINT: then the kernel
// ends all others.
func pause(stderr io.Writer) int {
	if os.Getpid() != 1 {
		fmt.Fprintln(stderr, "stead-node pause: it is not the first process of a pid namespace")
		return 2
	}
	end, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(child, syscall.SIGCHLD)
	for {
		reap()
		select {
		case <-end:
			return 0
		case <-child:
		}
	}
}

// reap waits for the children that have ended.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) && (err != nil || pid <= 0) {
			return
		}
	}
}
