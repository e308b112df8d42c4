package thread_test

import (
	"io"
	"runtime"
	"syscall"
	"testing"

	"github.com/stead-project/stead/internal/thread"
)

func TestEachRunHasAThreadOfItsOwn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 20 {
		outer := 0
		err := thread.Run(func() error {
			outer = syscall.Gettid()
			return thread.Run(func() error {
				if tid := syscall.Gettid(); tid == outer || tid == syscall.Getpid() {
					t.Errorf("run on thread %d, inside of thread %d of process %d", tid, outer, syscall.Getpid())
				}
				return io.EOF
			})
		})
		if err != io.EOF {
			t.Fatalf("got %v, want EOF", err)
		}
		if outer == syscall.Gettid() || outer == syscall.Getpid() {
			t.Fatalf("run on thread %d of process %d, from thread %d", outer, syscall.Getpid(), syscall.Gettid())
		}
	}
}
