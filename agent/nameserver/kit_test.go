package nameserver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// TestMain lets the test binary be the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("STEAD_DNS_TEST") == "" {
		os.Exit(m.Run())
	}
	var t Task
	err := json.Unmarshal([]byte(os.Args[2]), &t)
	if err == nil {
		err = Serve(context.Background(), os.Args[1], t, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// place is a host with a name server, whose agents come and go.
type place struct {
	t    *testing.T
	dir  string
	addr netip.AddrPort
	pids chan int
}

func newPlace(t *testing.T) *place {
	t.Helper()
	t.Setenv("STEAD_DNS_TEST", "1")
	dir, err := os.MkdirTemp("", "dns") // short: paths of sockets are
	if err != nil {
		t.Fatal(err)
	}
	k, err := dnsd.BindSockets(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	k.Close()
	p := &place{t: t, dir: dir, addr: k.Addr, pids: make(chan int, 100)}
	t.Cleanup(func() {
		if err := Dismiss(dir); err != nil {
			t.Error(err)
		}
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		p.eventually("removed", func() error { return os.RemoveAll(dir) }) // whom Dismiss could not find yet ends then by itself
		close(p.pids)
		for pid := range p.pids {
			p.ends(pid)
		}
		if t.Failed() {
			t.Logf("%s", log)
		}
	})
	return p
}

// ends waits until a process has ended. One that does not fails the test, and is killed, so that none is left.
func (p *place) ends(pid int) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(fmt.Sprint("/proc/", pid)); err != nil {
			return
		}
	}
	p.t.Errorf("process %d goes on: %v", pid, syscall.Kill(pid, syscall.SIGKILL))
}

func (p *place) eventually(what string, f func() error) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: %v", what, err)
		}
	}
}

// agent is one agent's side; end ends it as a crash does: nothing is said.
type agent struct {
	*Feeder
	end func()
}

func (p *place) agent(change func(*FeederConfig)) *agent {
	p.t.Helper()
	cfg := FeederConfig{
		Task: Task{Home: "one", Listen: []netip.AddrPort{p.addr}}, Dir: p.dir, Program: os.Args[0], Sum: sha256.Sum256([]byte("one")),
		Started: func(pid int) { p.pids <- pid }, Asked: func(spec.SetRef) {}, Logger: slog.New(slog.DiscardHandler),
		Follow: func(ctx context.Context, _ dnsd.Interest) error { <-ctx.Done(); return ctx.Err() },
	}
	if change != nil {
		change(&cfg)
	}
	f := NewFeeder(cfg)
	p.eventually("the addresses are taken", func() error { return f.Open(p.t.Context()) })
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	a := &agent{Feeder: f, end: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
		f.Close()
	})}
	p.t.Cleanup(a.end)
	return a
}

// world is all sets at a revision: of set db the members with these numbers as last byte of their address; in brief the set web.
func world(rev int64, members ...byte) dnsd.Snapshot {
	db := records.Snapshot{Ref: spec.SetRef{Namespace: "default", Name: "db"}, Service: "db", Names: []records.DNSName{{Name: "db"}}}
	for i, n := range members {
		db.Peers = append(db.Peers, records.Peer{Name: fmt.Sprint("db-", i), Ordinal: i, Address: netip.AddrFrom4([4]byte{10, 88, 0, n}), Ready: true})
	}
	web := records.Snapshot{Ref: spec.SetRef{Namespace: "default", Name: "web"}, Service: "web", Names: []records.DNSName{{Name: "web"}}, Brief: true,
		Peers: []records.Peer{{Name: "web-0", Address: netip.MustParseAddr("10.88.1.1")}}}
	return dnsd.Snapshot{
		Domain: "cluster.local", Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Members: netip.MustParsePrefix("10.88.0.0/16"),
		Pictures: []records.Snapshot{db, web},
		Others:   []records.SetNames{web.SetNames()},
	}
}

// question is one for the address of a name.
func question(id uint16, name string) []byte {
	q := binary.BigEndian.AppendUint16(nil, id)
	q = append(q, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, 0, 1, 0, 1)
}

// answer is what was said: the code, or the last byte of each address.
func answer(m []byte) string {
	if len(m) < 12 {
		return "too short"
	}
	if code := m[3] & 15; code != 0 {
		return fmt.Sprint("rcode ", code)
	}
	n := int(binary.BigEndian.Uint16(m[6:]))
	var out []string
	for i := 1; i <= n; i++ { // they are at the end: there is no EDNS
		out = append(out, fmt.Sprint(m[len(m)-16*(n-i)-1]))
	}
	return strings.Join(out, " ")
}

// ask asks once over UDP, without a second try.
func (p *place) ask(id uint16, name string) (string, error) {
	c, err := net.Dial("udp", p.addr.String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write(question(id, name)); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	var buf [1232]byte
	n, err := c.Read(buf[:])
	return answer(buf[:n]), err
}

// load asks without an end for a name, from several sides, until stop is called; each answer must be one of those that ok accepts.
func (p *place) load(name string, ok func(string) bool) (stop func() int64) {
	var over atomic.Bool
	var count atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for id := uint16(1); !over.Load(); id++ {
				got, err := p.ask(id, name)
				if err != nil || !ok(got) {
					p.t.Errorf("question %d: %q, %v", count.Load(), got, err)
					return
				}
				count.Add(1)
			}
		})
	}
	return func() int64 {
		over.Store(true)
		group.Wait()
		return count.Load()
	}
}

func (p *place) says(name, want string) {
	p.t.Helper()
	p.eventually(name+" is "+want, func() error {
		got, err := p.ask(1, name)
		if err == nil && got != want {
			err = fmt.Errorf("%q", got)
		}
		return err
	})
}
