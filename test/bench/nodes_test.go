package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stead-project/stead/proto"
)

// nodesOf makes this program a process of nodes: "KIND FIRST COUNT SOCKET DIR", where KIND is
// light or agent.
const nodesOf = "STEAD_BENCH_NODES"

// mostNodes is how many nodes are in one process.
const mostNodes = 125

func TestMain(m *testing.M) {
	if text := os.Getenv(nodesOf); text != "" {
		if err := runNodes(text); err != nil {
			fmt.Fprintln(os.Stderr, "nodes:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// nodes are hosts without containers in processes of their own, so that what this process
// uses is the server's share.
type nodes struct {
	b         *testing.B
	processes []*nodesProcess
}

type nodesProcess struct {
	count int
	in    io.WriteCloser
	out   *bufio.Reader
}

// startNodes starts n nodes of a kind, which join by themselves. Agents keep what lasts in dir. They
// end with the benchmark.
func startNodes(b *testing.B, kind string, n int, socket, dir string) *nodes {
	b.Helper()
	all := &nodes{b: b}
	for first := 0; first < n; first += mostNodes {
		count := min(mostNodes, n-first)
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s %s", nodesOf, kind, first, count, socket, dir))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		must(b, err)
		out, err := cmd.StdoutPipe()
		must(b, err)
		must(b, cmd.Start())
		b.Cleanup(func() { must(b, errors.Join(in.Close(), cmd.Wait())) })
		all.processes = append(all.processes, &nodesProcess{count, in, bufio.NewReader(out)})
	}
	return all
}

// counts are those of all processes.
func (n *nodes) counts() (sum counts) {
	n.b.Helper()
	for _, p := range n.processes {
		sum = sum.plus(n.ask(p, -1))
	}
	return sum
}

// cut takes half of the nodes of each process off the network, or, with none, brings all back.
// It returns how many are off.
func (n *nodes) cut(half bool) (off int) {
	n.b.Helper()
	for _, p := range n.processes {
		count := 0
		if half {
			count = p.count / 2
		}
		n.ask(p, count)
		off += count
	}
	return off
}

// profile has each process write what its processor does, and what it allocated until then, into files beside those of the server;
// "": it ends what it writes.
func (n *nodes) profile(path string) {
	n.b.Helper()
	for i, p := range n.processes {
		if path == "" {
			n.ask(p, -1, "-")
			continue
		}
		n.ask(p, -1, fmt.Sprintf("%s-nodes%d", path, i))
	}
}

// ask has a process take its first nodes off the network (-1: as it is), and returns its counts.
func (n *nodes) ask(p *nodesProcess, off int, profile ...any) (c counts) {
	n.b.Helper()
	_, err := fmt.Fprintln(p.in, append([]any{off}, profile...)...)
	must(n.b, err)
	line, err := p.out.ReadBytes('\n')
	must(n.b, err)
	must(n.b, json.Unmarshal(line, &c))
	return c
}

// runNodes is a process of nodes: it answers each line of its input, and ends when that is closed.
func runNodes(text string) error {
	var kind, socket, dir string
	var first, count int
	if _, err := fmt.Sscan(text, &kind, &first, &count, &socket, &dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var moved traffic
	links := make([]*link, count)
	for i := range links {
		name := fmt.Sprintf("n%04d", first+i)
		links[i] = newLink(&moved, func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		})
		wg.Go(func() {
			switch kind {
			case "light":
				(&light{name: name, link: links[i]}).run(ctx)
			case "agent":
				links[i].ended(runAgent(ctx, name, links[i], filepath.Join(dir, name), nil))
			}
		})
	}
	var prof profiles
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var off int
		var path string
		if n, err := fmt.Sscan(lines.Text(), &off, &path); n < 1 {
			return err
		}
		if path != "" {
			if err := prof.to(path); err != nil {
				return err
			}
		}
		for i, l := range links {
			if off >= 0 {
				l.cut(i < off)
			}
		}
		c, err := ownCounts()
		if err != nil {
			return err
		}
		c.Received = moved.received.Load()
		for _, l := range links {
			c.Err = l.err(c.Err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(c); err != nil {
			return err
		}
	}
	return lines.Err()
}

// traffic is what the connections of many nodes have moved.
type traffic struct {
	received atomic.Int64 // bytes
	calls    atomic.Int64 // reads and writes
}

// link is a node's way to the server. It can be cut.
type link struct {
	moved *traffic
	way   func(context.Context) (net.Conn, error)

	mu   sync.Mutex
	off  bool
	open map[net.Conn]bool
	last error
}

func newLink(moved *traffic, way func(context.Context) (net.Conn, error)) *link {
	return &link{moved: moved, way: way, open: map[net.Conn]bool{}}
}

var errCut = errors.New("the link is cut")

// dial is as server.Dial, over the link.
func (l *link) dial(context.Context) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(l.connect),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(proto.MaxMessageBytes), grpc.MaxCallSendMsgSize(proto.MaxMessageBytes)))
}

// connect fails before the server hears of it while the link is cut: a host off the network costs a server nothing.
func (l *link) connect(ctx context.Context, _ string) (net.Conn, error) {
	l.mu.Lock()
	off := l.off
	l.mu.Unlock()
	if off {
		return nil, errCut
	}
	c, err := l.way(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off {
		return nil, errors.Join(errCut, c.Close())
	}
	l.open[c] = true
	return &counted{c, l}, nil
}

func (l *link) cut(off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = off
	if off {
		for c := range l.open {
			c.Close() // the server sees the end at once; its reason is of no interest
		}
		clear(l.open)
	}
}

// ended notes why a session ended.
func (l *link) ended(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = err
}

// err is why the last session ended, or other if none did.
func (l *link) err(other string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return other
	}
	return l.last.Error()
}

// counted counts what is moved.
type counted struct {
	net.Conn
	link *link
}

// Read implements net.Conn.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.link.moved.received.Add(int64(n))
	c.link.moved.calls.Add(1)
	return n, err
}

// Write implements net.Conn.
func (c *counted) Write(p []byte) (int, error) {
	c.link.moved.calls.Add(1)
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.link.mu.Lock()
	delete(c.link.open, c.Conn)
	c.link.mu.Unlock()
	return c.Conn.Close()
}
