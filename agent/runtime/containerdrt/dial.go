package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/thread"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// Dial connects inside of the pinned network namespace. The socket belongs to it from then on.
func (r *sandboxes) Dial(ctx context.Context, id spec.Identity, port uint16) (conn net.Conn, err error) {
	defer wrap.Error(&err, "connect to port %d of %s", port, id)
	ns, err := os.Open(filepath.Join(r.sandboxDir(id), "net"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, runtime.ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(ns.Fd()), &st); err != nil || st.Type != nsfs {
		return nil, runtime.ErrNotRunning // half-made
	}
	err = thread.Run(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter its network namespace: %w", err)
		}
		var dialer net.Dialer // of one address it dials on this goroutine, and so in the namespace
		conn, err = dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if errors.Is(err, syscall.ECONNREFUSED) {
			if conn6, err6 := dialer.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(int(port)))); err6 == nil {
				conn, err = conn6, nil
			}
		}
		return err
	})
	return conn, err
}
