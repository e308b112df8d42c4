package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Lab is one simulated host: a network namespace without a default route, a
// containerd of its own, and the stead processes in it.
type Lab struct {
	t      testing.TB
	Name   string // of the network namespace
	Dir    string // short, for unix sockets
	Socket string

	containerd *process
	server     *process
	agent      *process
	store      *process   // external etcd; nil: servers embed theirs
	all        []*process // every program ever started here

	certs      *certs
	storeFlags []string // of servers, for the external etcd
	join       []string // flags of an agent that has its servers on other hosts
	program    string   // of the next server or agent; empty: the program under test
	boot       string   // file with the host's boot id; empty: the kernel's
	client     string   // client file of who has no server on the machine; empty: Socket

	slow time.Duration // what counts as hanging here; zero: hanging
}

// gateway is where DNS answers inside a lab.
const gateway = "169.254.1.1"

// newLab makes a host with a running containerd and registers its removal.
func newLab(t testing.TB) *Lab {
	t.Helper()
	l := newPlace(t)
	l.startContainerd()
	if externalStore() {
		l.startStore()
	}
	return l
}

// newPlace makes a machine without containerd, which runs no members.
func newPlace(t testing.TB) *Lab {
	t.Helper()
	needRoot(t)
	sweepOnce.Do(func() { sweep(t) })
	dir, err := os.MkdirTemp("", "stead-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{t: t, Dir: dir, Name: filepath.Base(dir), Socket: filepath.Join(dir, "api.sock")}
	if err := os.WriteFile(l.path("owner"), fmt.Appendf(nil, "%d", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.remove)
	l.run("ip", "netns", "add", l.Name)
	l.run("ip", "-n", l.Name, "link", "set", "lo", "up")
	return l
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 (root, containerd): run make e2e")
	}
}

// nodeName is unique on the machine, for cgroups are shared by all labs.
func (l *Lab) nodeName() string { return strings.ToLower(l.Name) }

// path is a place in the lab's directory.
func (l *Lab) path(elem ...string) string {
	return filepath.Join(append([]string{l.Dir}, elem...)...)
}

// run executes a command on the machine and fails the test when it fails.
func (l *Lab) run(name string, args ...string) string {
	l.t.Helper()
	out, err := l.try(hanging, name, args...)
	if err != nil {
		l.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// try executes a command with a deadline and returns what it printed.
func (l *Lab) try(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// inside executes a command in the lab's network namespace.
func (l *Lab) inside(limit time.Duration, name string, args ...string) (string, error) {
	return l.try(limit, "nsenter", append([]string{"--net=/run/netns/" + l.Name, name}, args...)...)
}

// stead runs the command line against the lab's server and fails the test when it fails.
func (l *Lab) stead(args ...string) string {
	l.t.Helper()
	out, err := l.trySteadFor(cmp.Or(l.slow, hanging), args...)
	if err != nil {
		l.t.Fatalf("stead %s: %v\n%s\n%s", strings.Join(args, " "), err, out, l.logs())
	}
	return out
}

func (l *Lab) trySteadFor(limit time.Duration, args ...string) (string, error) {
	if l.client != "" {
		return l.inside(limit, steadBinary, append([]string{"--config", l.client}, args...)...)
	}
	return l.try(limit, steadBinary, append([]string{"--server", "unix://" + l.Socket}, args...)...)
}

// hanging is how long anything may take before it counts as hanging. It is no measure:
// what takes a second here takes half a minute on a slow machine with cold caches.
const hanging = 4 * time.Minute

// patience is stead's own limit where it waits, for then it tells for what.
const patience = "230s"

// patience is the same where all is slow.
func (l *Lab) patience() string { return (cmp.Or(l.slow, hanging) - 10*time.Second).String() }

// eventually waits until f says nil, or fails with its last word. Less than hanging
// counts as hanging.
func (l *Lab) eventually(limit time.Duration, what string, f func() error) {
	l.t.Helper()
	limit = max(limit, hanging, l.slow)
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not within %s: %v\n%s", what, limit, err, l.logs())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// logs is the end of what the lab's processes wrote, for failures.
func (l *Lab) logs() string {
	var out strings.Builder
	said := map[string]bool{}
	for _, p := range l.all {
		if !said[p.log] {
			fmt.Fprintf(&out, "--- %s ---\n%s\n", p.name, p.tail(40))
		}
		said[p.log] = true
	}
	return out.String()
}

// lastWords are the ends of what the members' containers wrote.
func (l *Lab) lastWords() string {
	var out strings.Builder
	for _, file := range l.memberLogs() {
		fmt.Fprintf(&out, "--- %s ---\n%s\n", file, tail(file, 25))
	}
	return out.String()
}

// memberLogs are the files that the containers of the lab's members wrote last, one each.
func (l *Lab) memberLogs() (files []string) {
	all, _ := filepath.Glob(l.path("agent", "logs", "*", "*", "*", "*", "*.log")) // namespace, member, container, run
	newest := map[string]time.Time{}
	last := map[string]string{}
	for _, file := range all {
		container := filepath.Dir(filepath.Dir(file))
		if st, err := os.Stat(file); err == nil && st.ModTime().After(newest[container]) {
			newest[container], last[container] = st.ModTime(), file
		}
	}
	return slices.Sorted(maps.Values(last))
}

// process is one program of a lab, with its output in a file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// start runs a program in the lab's namespace until the lab is removed.
func (l *Lab) start(name string, argv ...string) *process {
	l.t.Helper()
	p := &process{name: name, log: l.path(name + ".log"), done: make(chan struct{})}
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	p.cmd = exec.Command("nsenter", append([]string{"--net=/run/netns/" + l.Name}, argv...)...)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in its log
	}()
	l.all = append(l.all, p)
	return p
}

// signal sends sig and, for one that ends the process, waits for its end.
func (p *process) signal(sig syscall.Signal) error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if sig == syscall.SIGSTOP || sig == syscall.SIGCONT {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(hanging):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within %v of %v", p.name, hanging, sig)
	}
}

// end has a process end by SIGTERM and waits for that.
func end(t testing.TB, p *process) {
	t.Helper()
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// said is all that the program printed. Who waits for a word looks here: it may be said
// once, and be followed by many others.
func (p *process) said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// waitSaid waits until the program printed the word.
func (p *process) waitSaid(l *Lab, word string) {
	l.t.Helper()
	l.eventually(time.Minute, p.name+" says "+word, func() error {
		if said := p.said(); !strings.Contains(said, word) {
			return errors.New(said)
		}
		return nil
	})
}

func (p *process) tail(lines int) string { return tail(p.log, lines) }

func tail(file string, lines int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
