package enter

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// file is a descriptor of the helper's. It only waits in the call: an os.File would first
// be made known to the poller, which costs the helper more than all that it reads.
type file int

// openFile opens a file of the kernel's to be written to.
func openFile(path string) (file, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return file(fd), nil
}

// Read implements io.Reader.
func (f file) Read(p []byte) (int, error) {
	n, err := again(func() (int, error) { return unix.Read(int(f), p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements io.Writer.
func (f file) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := again(func() (int, error) { return unix.Write(int(f), p[done:]) })
		if err != nil {
			return done, err
		}
		done += n
		if done >= len(p) {
			return done, nil
		}
	}
}

// again calls until no signal cuts in.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
