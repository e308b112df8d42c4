// Package self follows what members say of themselves: the files of /run/stead/self, a small tmpfs of each container,
// made anew at each of its starts. The kernel says when something was written (inotify); nothing is polled or run. A
// watch says one thing and is gone, and is made again after the next look, so that a member that writes without end
// costs a few looks a second.
package self

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
)

// Opener opens directories of running containers: containerdrt.Runtime. ErrNotFound: the container has none;
// ErrNotRunning.
type Opener interface {
	OpenDir(ctx context.Context, id runtime.ContainerID, path string) (*os.File, error)
}

// openAgain is the wait before an open that failed is tried again.
const openAgain = time.Second

// Follower follows the directories of a node's containers by one inotify instance, of which a host has few.
type Follower struct {
	open Opener
	fd   int
	file *os.File

	mu        sync.Mutex
	watches   map[int32]*notify.Signal
	followers sync.WaitGroup
	hearer    sync.WaitGroup
}

// New follows nothing yet.
func New(open Opener) (*Follower, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("follow what members say: %w", err)
	}
	f := &Follower{open: open, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), watches: map[int32]*notify.Signal{}}
	f.hearer.Go(f.hear)
	return f, nil
}

// Close waits until the contexts of all that is followed have ended.
func (f *Follower) Close() error {
	f.followers.Wait()
	err := f.file.Close()
	f.hearer.Wait()
	return err
}

// Follow calls report with what a running container says, and with each change, until ctx ends. It returns at once.
// Of a container without the directory it calls nothing.
func (f *Follower) Follow(ctx context.Context, id runtime.ContainerID, report func(records.Claim)) {
	f.followers.Go(func() {
		dir := f.await(ctx, id)
		if dir == nil {
			return
		}
		defer dir.Close()
		f.follow(ctx, dir, report)
	})
}

// await opens the directory; nil: there is none.
func (f *Follower) await(ctx context.Context, id runtime.ContainerID) *os.File {
	for ctx.Err() == nil {
		dir, err := f.open.OpenDir(ctx, id, files.SelfDir)
		switch {
		case err == nil:
			return dir
		case errors.Is(err, runtime.ErrNotFound):
			return nil
		}
		pause(ctx, nil, openAgain)
	}
	return nil
}

// follow reports what dir says until ctx ends.
func (f *Follower) follow(ctx context.Context, dir *os.File, report func(records.Claim)) {
	changed := notify.New()
	var last records.Claim
	var p pace
	first := true
	for ctx.Err() == nil {
		watch, err := f.watch(dir, changed) // before the look, so that nothing is missed between
		if err != nil {
			pause(ctx, nil, openAgain)
			continue
		}
		now := read(dir)
		wait := time.Duration(0)
		if first || now != last {
			wait = p.wait(time.Now(), last, now)
			if wait == 0 {
				last, first = now, false
				report(now)
			}
		}
		if wait == 0 {
			pause(ctx, changed.C(), 0)
		}
		f.forget(watch)
		pause(ctx, nil, max(wait, leastLook))
	}
}

// pause waits for ctx, for c (nil: not), or for a time (0: without end).
func pause(ctx context.Context, c <-chan struct{}, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-c:
	case <-due:
	}
}

// watched are the changes of files that count; one that is only made has no content yet.
const watched = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE

// watch has changed told of the next change in dir.
func (f *Follower) watch(dir *os.File, changed *notify.Signal) (int32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())))
	wd, err := unix.InotifyAddWatch(f.fd, path, watched|unix.IN_ONESHOT|unix.IN_ONLYDIR)
	if err != nil {
		return 0, err
	}
	f.watches[int32(wd)] = changed
	return int32(wd), nil
}

func (f *Follower) forget(watch int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.watches, watch)
	_, _ = unix.InotifyRmWatch(f.fd, uint32(watch)) // it is gone where it said something
}

// hear tells each change to whom it concerns.
func (f *Follower) hear() {
	buf := make([]byte, 64<<10)
	for {
		n, err := f.file.Read(buf)
		if err != nil {
			return
		}
		f.mu.Lock()
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(rest))
			if changed := f.watches[wd]; changed != nil {
				changed.Notify()
			}
			length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			rest = rest[min(length, len(rest)):]
		}
		f.mu.Unlock()
	}
}
