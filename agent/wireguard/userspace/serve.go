package userspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/stead-project/stead/agent/wireguard"
)

// lookTime is how often a process looks whether it can still be found.
const lookTime = 2 * time.Second

// Serve is the WireGuard of a link, which it makes unless it is there, until ctx ends, the link is removed, or something else
// is at its socket. It takes over from a process that has the link.
func Serve(ctx context.Context, link string, log *slog.Logger) error {
	path := wireguard.SocketPath(link)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	before, err := takeOver(path)
	if err != nil {
		return err
	}
	file, err := attach(link)
	if err != nil {
		return err
	}
	mtu, err := mtuOf(link)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	t, err := tun.CreateTUNFromFile(file, mtu)
	if err != nil {
		return errors.Join(fmt.Errorf("use link %s: %w", link, err), file.Close())
	}
	d := device.NewDevice(t, conn.NewDefaultBind(), logger(log))
	defer d.Close()
	if err := d.IpcSet(before.settings()); err != nil {
		return fmt.Errorf("take over keys and peers: %w", err)
	}
	if err := before.greet(d); err != nil {
		return err
	}
	lis, own, err := listen(path)
	if err != nil {
		return err
	}
	defer leave(path, lis, own)
	go accept(lis, d)
	log.Info("serves", "link", link, "peers taken over", len(before.peers))
	for tick := time.NewTicker(lookTime); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-d.Wait():
			return errors.New("the link was removed")
		case <-tick.C:
		}
		if !isAt(path, own) {
			log.Warn("ends, because nothing leads to it any more", "path", path)
			return nil
		}
	}
}

// attach opens the link, which stays when the process ends.
func attach(link string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(link)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach to link %s: %w", link, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// mtuOf is the link's MTU, which the library would set to one of its own.
func mtuOf(link string) (int, error) {
	i, err := net.InterfaceByName(link)
	if err != nil {
		return 0, err
	}
	return i.MTU, nil
}

// listen listens at path, for root alone, and returns what is there now.
func listen(path string) (*net.UnixListener, os.FileInfo, error) {
	_ = os.Remove(path) // of the process before
	old := unix.Umask(0o077)
	lis, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(old)
	if err != nil {
		return nil, nil, fmt.Errorf("be found: %w", err)
	}
	lis.SetUnlinkOnClose(false) // by then it may be another's
	own, err := os.Stat(path)
	if err != nil {
		return nil, nil, errors.Join(err, lis.Close())
	}
	return lis, own, nil
}

// accept handles connections until the listener is closed.
func accept(lis net.Listener, d *device.Device) {
	for {
		c, err := lis.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // no descriptor is free
			continue
		}
		go d.IpcHandle(c) // which closes it
	}
}

// leave makes the process not to be found any more.
func leave(path string, lis net.Listener, own os.FileInfo) {
	if isAt(path, own) {
		_ = os.Remove(path)
	}
	_ = lis.Close()
}

// isAt reports whether own is still what is at path.
func isAt(path string, own os.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && os.SameFile(now, own)
}

// logger hands on what the library says of errors; what it says of single packets is left out.
func logger(log *slog.Logger) *device.Logger {
	return &device.Logger{
		Verbosef: func(string, ...any) {},
		Errorf:   func(format string, args ...any) { log.Warn(fmt.Sprintf(format, args...)) },
	}
}
