package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// output is what a command prints, while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all of it up to now.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// background starts a command line that runs on, and waits until it has printed what pattern says.
func (l *Lab) background(pattern string, args ...string) (cmd *exec.Cmd, out *output, found []string) {
	l.t.Helper()
	cmd, out = l.steadCommand(args...), &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.eventually(time.Minute, strings.Join(args, " "), func() error {
		found = regexp.MustCompile(pattern).FindStringSubmatch(out.String())
		if found == nil {
			return fmt.Errorf("it printed %q", out)
		}
		return nil
	})
	return cmd, out, found
}

// question says something to a local port, and returns the line and the number of bytes that are answered.
func question(port string, text []byte) (line string, more int64, err error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(hanging)); err != nil {
		return "", 0, err
	}
	if _, err := conn.Write(text); err != nil {
		return "", 0, err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // the answer comes after the end
		return "", 0, err
	}
	in := bufio.NewReader(conn)
	if line, err = in.ReadString('\n'); err != nil {
		return line, 0, err
	}
	more, err = io.Copy(io.Discard, in)
	return strings.TrimSpace(line), more, err
}

// TestPortsAreForwardedIntoMembers: much and many at once, each direction to its own end; a port where
// nothing listens, and a member that is killed, end connections and not the forwarder.
func TestPortsAreForwardedIntoMembers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	forwarder, said, found := l.background(`Forwarding from 127\.0\.0\.1:(\d+) -> 7777\n`, "port-forward", "life-1", ":7777", "--address", "127.0.0.1")
	port := found[1]
	ask := func(text []byte) error {
		want := fmt.Sprintf("%d %x", len(text), sha256.Sum256(text))
		line, more, err := question(port, text)
		if err == nil && (line != want || more != int64(len(text))) {
			err = fmt.Errorf("got %q and %d bytes, want %q", line, more, want)
		}
		return err
	}
	if err := ask([]byte("x")); err == nil {
		t.Error("something answered before anything listened")
	}
	l.eventually(time.Minute, "the reason is said", func() error {
		if !strings.Contains(said.String(), "member life-1: nothing listens on port 7777 of its loopback") {
			return fmt.Errorf("it printed %q", said)
		}
		return nil
	})
	listener, _, _ := l.background("listens", "exec", "life-1", "--", "/box", "command", "listen", "7777")
	if err := ask(bytes.Repeat([]byte("0123456789abcdef"), 100<<20/16)); err != nil { // 100 MiB, both ways
		t.Error(err)
	}
	var group sync.WaitGroup
	for i := range 80 {
		group.Go(func() {
			if err := ask(bytes.Repeat([]byte{byte(i)}, 100_000+i)); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	group.Wait()

	open, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := open.Write([]byte("unfinished")); err != nil {
		t.Fatal(err)
	}
	before := l.mustMember("life-1")
	l.killMember("life-1")
	_ = listener.Wait() // it was killed
	if err := open.SetReadDeadline(time.Now().Add(hanging)); err != nil {
		t.Fatal(err)
	}
	if n, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("after the member was killed: %d bytes, %v", n, err)
	}
	l.waitReady("life-1", &before)
	l.background("listens", "exec", "life-1", "--", "/box", "command", "listen", "7777")
	if err := ask([]byte("again")); err != nil {
		t.Errorf("after the member was restarted: %v", err)
	}
	if err := forwarder.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := forwarder.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v, %s", err, said)
	}
}

// TestWhatMembersUseIsMeasured: a member that works, and the node.
func TestWhatMembersUseIsMeasured(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	l.background("spins", "exec", "life-2", "--", "/box", "command", "spin")
	amounts := func(line string) (name string, cpu, memory int64, err error) {
		_, err = fmt.Sscanf(line, "%s %dm %dMi", &name, &cpu, &memory)
		return name, cpu, memory, err
	}
	l.eventually(time.Minute, "the member that works is first", func() error {
		out := l.stead("top", "pods", "--sort-by", "cpu", "--no-headers")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		name, cpu, memory, err := amounts(lines[0])
		if err != nil || len(lines) != 3 || name != "life-2" || cpu < 50 || cpu > 1500 || memory < 1 {
			return fmt.Errorf("got %q, %v", out, err)
		}
		return nil
	})
	var name string
	var cpu, cpuShare, memory, memoryShare int64
	out := l.stead("top", "nodes", "--no-headers")
	if _, err := fmt.Sscanf(out, "%s %dm %d%% %dMi %d%%", &name, &cpu, &cpuShare, &memory, &memoryShare); err != nil || cpu < 50 || memory < 10 || memoryShare > 100 {
		t.Errorf("got %q, %v", out, err)
	}
}
