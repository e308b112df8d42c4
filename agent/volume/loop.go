package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	loopControl = "/dev/loop-control"
	blockDir    = "/sys/block"
	// loopTries is how often a free device is asked for that somebody else takes first.
	loopTries = 100
)

// attachLoop returns an open loop device of the file: the one that it has, or a new one, which the kernel
// frees when nothing has it open or mounted. So a file is never behind two, and what is mounted twice
// is one file system.
func attachLoop(f *os.File) (*os.File, error) {
	if loop, err := findLoop(f); err != nil || loop != nil {
		return loop, err
	}
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	defer control.Close()
	for range loopTries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		loop, err := configure(number, f)
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENXIO) {
			return loop, err
		}
	}
	return nil, fmt.Errorf("no loop device stayed free in %d tries", loopTries)
}

// configure makes a free device one of the file. Writes go past the host's page cache, and nothing that is
// deleted in it frees space of the file.
func configure(number int, f *os.File) (_ *os.File, err error) {
	name := "loop" + strconv.Itoa(number)
	loop, err := os.OpenFile(filepath.Join("/dev", name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			loop.Close()
		}
	}()
	config := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO}}
	if err := unix.IoctlLoopConfigure(int(loop.Fd()), &config); err != nil {
		return nil, fmt.Errorf("make %s a device of %s: %w", name, f.Name(), err)
	}
	if err := os.WriteFile(filepath.Join(blockDir, name, "queue/discard_max_bytes"), []byte("0"), 0); err != nil {
		return nil, fmt.Errorf("keep %s from freeing space: %w", name, err)
	}
	return loop, nil
}

// findLoop opens the loop device of a file; nil: it has none.
func findLoop(f *os.File) (*os.File, error) {
	want, err := statOf(f)
	if err != nil {
		return nil, err
	}
	used, err := filepath.Glob(filepath.Join(blockDir, "loop*", "loop", "backing_file"))
	if err != nil {
		return nil, err
	}
	for _, path := range used {
		name := strings.Split(strings.TrimPrefix(path, blockDir+"/"), "/")[0]
		loop, err := os.OpenFile(filepath.Join("/dev", name), os.O_RDONLY, 0)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) {
				continue // freed meanwhile
			}
			return nil, err
		}
		info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
		switch {
		case err == nil && info.Device == want.Dev && info.Inode == want.Ino:
			return loop, nil
		case err != nil && !errors.Is(err, unix.ENXIO):
			return nil, errors.Join(fmt.Errorf("look at %s: %w", name, err), loop.Close())
		}
		loop.Close()
	}
	return nil, nil
}

// isOf reports whether what is mounted at path is the image.
func isOf(f *os.File, path string) bool {
	loop, err := findLoop(f)
	if err != nil || loop == nil {
		return false
	}
	defer loop.Close()
	var at unix.Stat_t
	device, err := statOf(loop)
	return err == nil && unix.Stat(path, &at) == nil && at.Dev == device.Rdev
}

func statOf(f *os.File) (st unix.Stat_t, err error) {
	return st, unix.Fstat(int(f.Fd()), &st)
}
