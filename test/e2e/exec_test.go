package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/test/judge"
)

// steadCommand is a command line against the lab's server, not yet started.
func (l *Lab) steadCommand(args ...string) *exec.Cmd {
	argv := []string{steadBinary, "--server", "unix://" + l.Socket}
	if l.client != "" {
		argv = []string{"nsenter", "--net=/run/netns/" + l.Name, steadBinary, "--config", l.client}
	}
	argv = append(argv, args...)
	cmd := exec.CommandContext(l.t.Context(), argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	return cmd
}

func TestCommandsRunInMembersAndTheirCodesAreOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)

	var out, errOut bytes.Buffer
	cmd := l.steadCommand("exec", "life-1", "--", "/box", "command", "code", "37")
	cmd.Stdout, cmd.Stderr = &out, &errOut
	exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
	if !ok || exit.ExitCode() != 37 || out.String() != "to stdout\n" || errOut.String() != "to stderr\n" {
		t.Errorf("code: %v, stdout %q, stderr %q", exit, out.String(), errOut.String())
	}

	big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<17) // 2 MiB: more than all buffers on the way
	out.Reset()
	cmd = l.steadCommand("exec", "-i", "life-2", "--", "/box", "command", "cat")
	cmd.Stdin, cmd.Stdout = bytes.NewReader(big), &out
	if err := cmd.Run(); err != nil || !bytes.Equal(out.Bytes(), big) {
		t.Errorf("cat: %v, %d bytes back of %d", err, out.Len(), len(big))
	}

	// What is killed here is killed there.
	cmd = l.steadCommand("exec", "-i", "life-0", "--", "/box", "command", "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	processes := func(want int) func() error {
		return func() error {
			if pids := l.pidsOf("life-0"); len(pids) != want {
				return fmt.Errorf("%d processes, want %d", len(pids), want)
			}
			return nil
		}
	}
	l.eventually(time.Minute, "the command runs", processes(2))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	l.eventually(time.Minute, "the command is killed", processes(1))

	before := l.mustMember("life-0").Status.Token
	for _, c := range []struct {
		args []string
		code int
		word string
	}{
		{[]string{"exec", "life-0", "--", "/no/such"}, 1, "/no/such"},
		{[]string{"exec", "life-0", "-c", "x", "--", "/box"}, 1, "it has life"},
		{[]string{"exec", "life-9", "--", "/box"}, 1, "there is no member life-9"},
		{[]string{"exec", "life-0", "/box"}, 2, "-- and a command"},
		{[]string{"exec", "-t", "life-0", "--", "/box"}, 2, "needs a terminal"},
	} {
		text, err := l.trySteadFor(time.Minute, c.args...)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != c.code || !strings.Contains(text, c.word) {
			t.Errorf("%v: %v, %s", c.args, err, text)
		}
	}
	if m := l.mustMember("life-0").Status; m.Token != before || m.Restarts != 0 {
		judge.Broken(t, "the member was touched: %+v", m)
	}
}

// terminal is a pseudo-terminal: a screen that is read and keys that are typed.
type terminal struct {
	l      *Lab
	master *os.File
	mu     sync.Mutex
	screen strings.Builder
}

// onTerminal starts a command on a terminal of its own.
func (l *Lab) onTerminal(cmd *exec.Cmd, columns, rows uint16) *terminal {
	l.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { master.Close() })
	term := &terminal{l: l, master: master}
	term.resize(columns, rows)
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() { // ends when the command has left the terminal
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			term.mu.Lock()
			term.screen.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

func (t *terminal) resize(columns, rows uint16) {
	t.l.t.Helper()
	if err := unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.l.t.Fatal(err)
	}
}

func (t *terminal) keys(text string) {
	t.l.t.Helper()
	if _, err := t.master.WriteString(text); err != nil {
		t.l.t.Fatal(err)
	}
}

func (t *terminal) shows(text string) {
	t.l.t.Helper()
	t.l.eventually(time.Minute, "the terminal shows "+text, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !strings.Contains(t.screen.String(), text) {
			return fmt.Errorf("it shows %q", t.screen.String())
		}
		return nil
	})
}

func TestATerminalReachesIntoAMember(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	cmd := l.steadCommand("exec", "-it", "life-0", "--", "/box", "command", "tty")
	term := l.onTerminal(cmd, 93, 31)
	term.shows("size 93 31")
	term.keys("hello\r")
	term.shows("line hello")
	term.resize(120, 50)
	term.shows("size 120 50")
	term.keys("\x03") // Ctrl-C is the command's, not ours
	term.shows("interrupted")
	term.keys("end\r")
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 42 {
		t.Errorf("its end: %v", err)
	}
}

// TestAHungContainerdRestartsNobody: probes go on without it.
func TestAHungContainerdRestartsNobody(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	probe := "{exec: {command: [/box, command, note, /data/PROBE]}, periodSeconds: 1, timeoutSeconds: 4, failureThreshold: 1}"
	set := lifeWith("readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}", "readinessProbe: "+
		strings.Replace(probe, "PROBE", "ready", 1)+"\n        livenessProbe: "+strings.Replace(probe, "PROBE", "alive", 1))
	l.apply("life", strings.Replace(set, "replicas: 3", "replicas: 1", 1), "--wait", "--timeout", patience)
	probed := func(what string) int { // it ran so often
		notes, err := os.ReadFile(l.path("agent/volumes/default/life/data-0/data", what))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return bytes.Count(notes, []byte("\n"))
	}
	asked := func() {
		t.Helper()
		for _, what := range []string{"ready", "alive"} {
			was := probed(what)
			l.eventually(time.Minute, "probes are run", func() error {
				if now := probed(what); now < was+3 {
					return fmt.Errorf("%s was asked %d times", what, now-was)
				}
				return nil
			})
		}
	}
	asked()
	before := l.waitReady("life-0", nil).Status
	if err := l.containerd.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.containerd.signal(syscall.SIGCONT) })
	asked() // all the same: a command needs no daemon
	if m := l.mustMember("life-0").Status; !m.Ready || m.Restarts != 0 {
		judge.Broken(t, "while containerd hung: %+v", m)
	}
	if err := l.containerd.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	asked()
	if now := l.waitReady("life-0", nil).Status; now.Token != before.Token || now.Restarts != 0 {
		judge.Broken(t, "before %+v, now %+v", before, now)
	}
}
