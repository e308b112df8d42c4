package userspace

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/device"

	"github.com/stead-project/stead/agent/wireguard"
)

// askTime is how long a process may take to answer, and endTime to end when it is asked to, before it is killed.
const (
	askTime = 5 * time.Second
	endTime = 5 * time.Second
)

// taken is what a process has of its predecessor.
type taken struct {
	lines []string // as the library sets them
	peers []string // public keys, in hex, of those that it had exchanged keys with
}

// settings are the lines as a text.
func (t *taken) settings() string { return strings.Join(t.lines, "") }

// greet begins an exchange of keys with each peer that there was one with: the old keys are gone with the process, and a
// peer notices that only after some seconds.
func (t *taken) greet(d *device.Device) error {
	if len(t.peers) == 0 {
		return nil
	}
	if err := d.Up(); err != nil { // the link is up, which the library will see later
		return fmt.Errorf("take over: %w", err)
	}
	for _, text := range t.peers {
		var key device.NoisePublicKey
		if key.FromHex(text) != nil {
			continue
		}
		if p := d.LookupPeer(key); p != nil {
			_ = p.SendHandshakeInitiation(false) // it is repeated with the next packet
		}
	}
	return nil
}

// takeOver reads the settings of the process at path, and ends it. No process: there are none.
func takeOver(path string) (t taken, err error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer c.Close()
	pid, err := wireguard.PeerPID(c)
	if err != nil {
		return t, err
	}
	if err := c.SetDeadline(time.Now().Add(askTime)); err != nil {
		return t, err
	}
	if t, err = readSettings(c); err != nil {
		t = taken{} // it is frozen: the agent sets all of it again
	}
	return t, end(pid)
}

// readSettings asks for the settings.
func readSettings(c net.Conn) (t taken, err error) {
	if _, err := c.Write([]byte("get=1\n\n")); err != nil {
		return t, err
	}
	peer := ""
	for in := bufio.NewScanner(c); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), "=")
		switch name {
		case "":
			return t, nil
		case "errno":
			if value != "0" {
				return t, fmt.Errorf("the process before this one answers with error %s", value)
			}
			continue
		case "public_key":
			peer = value
		case "last_handshake_time_sec":
			if value != "0" {
				t.peers = append(t.peers, peer)
			}
			continue
		case "last_handshake_time_nsec", "tx_bytes", "rx_bytes":
			continue
		}
		t.lines = append(t.lines, in.Text()+"\n")
	}
	return t, errors.New("the process before this one ended before it had answered")
}

// end ends a process of this program, and returns when it has ended.
func end(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if name, _, _ := strings.Cut(filepath.Base(exe), " "); err != nil || name != wireguard.Program {
		return fmt.Errorf("process %d at the socket is not %s: %q (%w)", pid, wireguard.Program, exe, err)
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("end process %d: %w", pid, err)
		}
		if ended(fd, endTime) {
			return nil
		}
	}
	return fmt.Errorf("process %d does not end", pid)
}

// ended waits until a process has ended; false: it has not, in time.
func ended(fd int, most time.Duration) bool {
	for deadline := time.Now().Add(most); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if n > 0 && err == nil {
			return true
		}
	}
}
