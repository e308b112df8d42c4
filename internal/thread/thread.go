// Package thread runs what changes an OS thread for good, such as its namespaces or its user.
package thread

import (
	"runtime"
	"syscall"
)

// Run runs f on an OS thread of its own. The thread ends with f: it is never unlocked, so that
// no other goroutine can run on it, whatever f has made of it. It is never the main thread,
// which cannot end, and whose namespaces /proc/self would show.
func Run(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			done <- Run(f) // on another one: this one is held meanwhile
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}
