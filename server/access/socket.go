package access

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socket is a unix listener that holds the lock of its path.
type socket struct {
	*net.UnixListener
	lock *os.File
	path string
}

// ListenSocket opens the unix socket at path, for its owner only. One that a dead server
// left is replaced; while another server lives, which its lock tells, it is refused.
// The socket appears at path by rename, with its mode: at no moment is it open to others.
func ListenSocket(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another server answers on %s; stop it, or give this one another socket", path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	l, err := bind(dir, path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &socket{l, lock, path}, nil
}

// bind makes the socket in a directory of its own and moves it to path.
func bind(dir, path string) (*net.UnixListener, error) {
	if err := checkVacant(path); err != nil {
		return nil, err
	}
	private, err := os.MkdirTemp(dir, ".s") // 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	draft := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: draft, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(draft, 0o600), os.Rename(draft, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// checkVacant refuses a path that is taken by anything but the socket of a dead server.
func checkVacant(path string) error {
	there, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case there.Mode().Type() != os.ModeSocket:
		return errors.New("what is there is not a socket; move it away, or choose another path")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil // no answer: a socket left behind
	}
	return errors.Join(errors.New("another program answers there; stop it, or choose another path"), conn.Close())
}

// Close ends the listener and lets the path go. gRPC closes it too; only the first
// time counts.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, os.Remove(s.path), s.lock.Close())
}
