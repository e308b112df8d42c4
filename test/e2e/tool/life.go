package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// beat is how often a life tells the witness that it lives.
const beat = 100 * time.Millisecond

// life takes the identity's lock, then tells the witness every 100 ms its identity,
// token and the kernel's monotonic time, until it is told to stop. A witness that is
// there hears it before it answers probes, and once more when it is told to stop.
func life(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("life", flag.ContinueOnError)
	witnessAddr := flags.String("witness", "169.254.1.1:7777", "address of the witness; udp:ADDRESS sends datagrams")
	lockDir := flags.String("lock", "/data", "directory of the identity's lock; empty: none")
	about := flags.String("member", "/run/stead/member.json", "file that names the life")
	say := flags.Bool("say", false, "print a line each time, too")
	listen := flags.String("listen", ":8080", "address that answers probes; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var who struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Token     string `json:"token"`
	}
	text, err := os.ReadFile(*about)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &who); err != nil {
		return fmt.Errorf("read %s: %w", *about, err)
	}
	name := who.Namespace + "/" + who.Name
	if *lockDir != "" {
		lock, err := os.OpenFile(filepath.Join(*lockDir, "life.lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			tell(ctx, *witnessAddr, fmt.Sprintf("DOUBLE %s %s %d\n", name, who.Token, monotonic()))
			return fmt.Errorf("another life of %s holds the lock: %w", name, err)
		}
	}
	conn := reach(ctx, *witnessAddr)
	told := func() {
		if conn == nil {
			return
		}
		if _, err := fmt.Fprintf(conn, "LIFE %s %s %d\n", name, who.Token, monotonic()); err != nil {
			conn.Close()
			conn = nil
		}
	}
	told()
	if *listen != "" {
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			return err
		}
		defer l.Close()
		go acceptAll(l)
	}
	fmt.Printf("life of %s with token %s began\n", name, who.Token)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if *say {
			fmt.Println("beat", n) // ends the life when nobody reads it
		}
		if conn == nil {
			conn, _ = dialWitness(*witnessAddr) // tried again at the next beat
		}
		told()
		select {
		case <-ctx.Done():
			told()
			if conn != nil {
				_ = heard(conn) // it may be gone
			}
			fmt.Printf("life of %s with token %s ended\n", name, who.Token)
			return nil
		case <-ticker.C:
		}
	}
}

// reach connects to the witness, again when the network is not ready yet; nil when
// there is none.
func reach(ctx context.Context, addr string) net.Conn {
	for range 20 {
		conn, err := dialWitness(addr)
		if err == nil {
			return conn
		}
		if ctx.Err() != nil || errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		time.Sleep(beat / 10) // unreachable says so at once
	}
	return nil
}

func dialWitness(addr string) (net.Conn, error) {
	if at, ok := strings.CutPrefix(addr, "udp:"); ok {
		return net.Dial("udp", at)
	}
	return net.DialTimeout("tcp", addr, time.Second)
}

// heard ends a connection, and returns nil when the witness has read all of it; nobody knows
// that of datagrams.
func heard(conn net.Conn) error {
	stream, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := stream.CloseWrite(); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}

// acceptAll answers probes until the listener is closed.
func acceptAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			c.Close()
		}
	}
}

// monotonic is the kernel's boot-time clock in nanoseconds: the same for all
// processes of a machine, never set back.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux since 2.6.39 has it
	}
	return ts.Nano()
}

// tell sends one line to the witness, and tries again until it was taken.
func tell(ctx context.Context, addr, line string) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		err := tellOnce(ctx, addr, line)
		if err == nil {
			return
		}
		fmt.Fprintln(os.Stderr, "tell the witness:", err)
		select {
		case <-ctx.Done():
		case <-time.After(beat):
		}
	}
}

// tellOnce returns nil when the witness has read the line: it answers with its end.
func tellOnce(ctx context.Context, addr, line string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, line); err != nil {
		return err
	}
	return heard(conn)
}
