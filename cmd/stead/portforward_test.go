package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
)

// forwarding is a cluster with the set db, whose members' ports answer on this machine.
type forwarding struct {
	*cluster
	mu    sync.Mutex
	ports map[string]func(net.Conn) // by member and port, as in "db-0:2379"
}

func newForwarding(t *testing.T) *forwarding {
	f := &forwarding{cluster: newCluster(t, nil), ports: map[string]func(net.Conn){}}
	if code, out := f.stead("apply", "-f", "testdata/db.yaml", "-f", "testdata/files.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	f.host.OnDial(func(id spec.Identity, port uint16) (net.Conn, error) {
		f.mu.Lock()
		answer := f.ports[id.MemberName()+":"+strconv.Itoa(int(port))]
		f.mu.Unlock()
		if answer == nil {
			return nil, syscall.ECONNREFUSED
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		there, err := l.Accept()
		if err != nil {
			return nil, err
		}
		go answer(there)
		return conn, nil
	})
	return f
}

// listen lets a member answer at a port.
func (f *forwarding) listen(at string, answer func(net.Conn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ports[at] = answer
}

// echo says "NAME: " and what was said, once that is over.
func echo(name string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		text, err := io.ReadAll(c)
		if err == nil {
			_, _ = fmt.Fprintf(c, "%s: %s", name, text)
		}
	}
}

// forwardedPort finds the local port of a line.
var forwardedPort = regexp.MustCompile(`Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)\n`)

// start runs port-forward until stop, which returns its exit code; locals are the ports to which
// one may connect, in order.
func (f *forwarding) start(ports int, args ...string) (locals []string, out *lines, stop func() int) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	out = &lines{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"--server", "unix://" + f.socket, "port-forward"}, args...), out, out)
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	f.t.Cleanup(func() { stop() })
	f.until("the forwarder listens", func() bool {
		locals = nil
		for _, m := range forwardedPort.FindAllStringSubmatch(out.String(), -1) {
			locals = append(locals, m[1])
		}
		return len(locals) == ports || len(ended) > 0
	})
	if len(locals) != ports {
		f.t.Fatalf("it has ended: %s", out)
	}
	return locals, out, stop
}

// say says something to a local port, and returns the answer.
func (f *forwarding) say(port string, text []byte) (string, error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := conn.Write(text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func TestAPortIsForwardedToTheMemberThatIsNamed(t *testing.T) {
	f := newForwarding(t)
	for _, member := range []string{"db-0", "db-1"} {
		f.listen(member+":2379", echo(member))
		f.listen(member+":2380", echo(member+" peer"))
	}
	for _, c := range []struct{ args, want []string }{
		{[]string{"db-1", ":2379"}, []string{"db-1"}},
		{[]string{"pod/db-1", ":client", ":2380"}, []string{"db-1", "db-1 peer"}},
		{[]string{"sts/db", ":2380"}, []string{"db-0 peer"}},
		{[]string{"svc/db", ":client"}, []string{"db-0"}},
		{[]string{"svc/db", ":2380"}, []string{"db-0 peer"}}, // headless: the member's
	} {
		locals, out, stop := f.start(len(c.want), c.args...)
		for i, want := range c.want {
			if got, err := f.say(locals[i], []byte("hello")); err != nil || got != want+": hello" {
				t.Errorf("%v: got %q, %v, want %q", c.args, got, err, want)
			}
			if !strings.Contains(out.String(), "Handling connection for "+locals[i]) {
				t.Errorf("%v: got %s", c.args, out)
			}
		}
		if code := stop(); code != exitDone {
			t.Errorf("%v: Ctrl-C ended it with %d: %s", c.args, code, out)
		}
		if conn, err := net.Dial("tcp", "127.0.0.1:"+locals[0]); err == nil {
			conn.Close()
			t.Errorf("%v: it still listens after its end", c.args)
		}
	}
}

// TestMuchIsForwardedOverManyConnectionsAtOnce, each to its end, and more of them than may be open.
func TestMuchIsForwardedOverManyConnectionsAtOnce(t *testing.T) {
	f := newForwarding(t)
	f.listen("db-0:2379", echo("db-0"))
	locals, out, _ := f.start(1, "db-0", ":2379")
	var group sync.WaitGroup
	for i := range mostForwards + 20 {
		group.Go(func() {
			text := bytes.Repeat([]byte{byte('a' + i%26)}, 300_000+i)
			if got, err := f.say(locals[0], text); err != nil || got != "db-0: "+string(text) {
				t.Errorf("connection %d: got %d bytes, %v", i, len(got), err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.Log(out)
	}
}

// TestAConnectionThatFailsDoesNotEndTheForwarder: its reason is said, and the next one may be better.
func TestAConnectionThatFailsDoesNotEndTheForwarder(t *testing.T) {
	f := newForwarding(t)
	locals, out, _ := f.start(1, "db-0", ":2379")
	if got, err := f.say(locals[0], []byte("x")); err == nil && got != "" {
		t.Errorf("got %q", got)
	}
	f.until("it is said", func() bool {
		return strings.Contains(out.String(), "member db-0: nothing listens on port 2379 of its loopback")
	})
	broken := make(chan struct{})
	f.listen("db-0:2379", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
		close(broken)
	})
	if _, err := f.say(locals[0], []byte("x")); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want a reset, as the member's", err)
	}
	<-broken
	f.until("it is said", func() bool {
		return strings.Contains(out.String(), "member db-0: the connection to port 2379 broke: ")
	})
	f.listen("db-0:2379", echo("again"))
	if got, err := f.say(locals[0], []byte("x")); err != nil || got != "again: x" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAForwarderThatCannotWorkSaysSoAtOnce.
func TestAForwarderThatCannotWorkSaysSoAtOnce(t *testing.T) {
	f := newForwarding(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"db-0", port + ":2379", "--address", "127.0.0.1"}, "address already in use; choose another one, as in 15432:5432 or :5432"},
		{[]string{"svc/db", "nosuch"}, "service db has no port nosuch"},
	} {
		if code, out := f.stead(append([]string{"port-forward"}, c.args...)...); code != exitRefused || !strings.Contains(out, c.want) {
			t.Errorf("%v: got %d, %s, want %q", c.args, code, out, c.want)
		}
	}
	if code, out := f.stead("scale", "db", "--replicas", "0", "--wait"); code != exitDone {
		t.Fatal(out)
	}
	if code, out := f.stead("port-forward", "sts/db", ":2379"); code != exitRefused || !strings.Contains(out, "set db has no ready member") {
		t.Errorf("got %d, %s", code, out)
	}
}
