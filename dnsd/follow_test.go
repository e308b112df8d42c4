package dnsd

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var web = spec.SetRef{Namespace: "default", Name: "web"}

// followingNode is a server whose Follow puts sets in the zone that were known by name only.
type followingNode struct {
	*Server
	addr string

	mu       sync.Mutex
	snapshot Snapshot
	followed []Interest
}

// startFollowing runs a server with partly's zone. before (nil: nothing) is what Follow does first.
func startFollowing(t *testing.T, cfg Config, before func(context.Context, Interest) error) *followingNode {
	n := &followingNode{snapshot: partly()}
	cfg.Follow = func(ctx context.Context, i Interest) error {
		n.mu.Lock()
		n.followed = append(n.followed, i)
		n.mu.Unlock()
		if before != nil {
			if err := before(ctx, i); err != nil {
				return err
			}
		}
		n.follow(i)
		return nil
	}
	if cfg.hold == 0 {
		cfg.hold = time.Minute // however slow the machine
	}
	n.Server, n.addr = start(t, cfg)
	n.Swap(Build(n.snapshot))
	return n
}

// follow makes the set of an interest whole; web-5 has the address 10.88.0.50.
func (n *followingNode) follow(i Interest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i.Address == netip.MustParseAddr("10.88.0.50") {
		i.Set = web
	}
	at := slices.IndexFunc(n.snapshot.Others, func(o records.SetNames) bool { return o.Ref == i.Set })
	if at < 0 {
		return
	}
	short := n.snapshot.Others[at]
	p := records.Snapshot{Ref: i.Set, Service: short.Service, Names: []records.DNSName{dnsName(short.Service, "http", "tcp")}}
	p.Peers = []records.Peer{peer(string(i.Set.Name)+"-5", 5, "10.88.0.50", true)}
	n.snapshot.Pictures = append(n.snapshot.Pictures, p)
	n.snapshot.Others = slices.Delete(slices.Clone(n.snapshot.Others), at, at+1)
	n.snapshot.Sequence.Rev++
	n.Swap(n.zone.Load().Next(n.snapshot))
}

func (n *followingNode) asksFor() []Interest {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.followed)
}

// waiting is how many questions are held.
func (s *Server) waiting() int {
	s.follows.held.mu.Lock()
	defer s.follows.held.mu.Unlock()
	return s.follows.held.used
}

// until waits for a condition, for a minute at most.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestAQuestionWaitsUntilItsSetIsFollowed(t *testing.T) {
	const below = "default.svc.cluster.local. "
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		for _, network := range []string{"udp", "tcp"} {
			for question, want := range map[string]string{
				"WEB." + below + "A":              "WEB." + strings.TrimSpace(below) + "\t1\tIN\tA\t10.88.0.50",
				"web-5.web." + below + "A":        "web-5.web." + strings.TrimSpace(below) + "\t1\tIN\tA\t10.88.0.50",
				"_http._tcp.web." + below + "SRV": "_http._tcp.web." + strings.TrimSpace(below) + "\t1\tIN\tSRV\t0 100 1 web-5.web." + strings.TrimSpace(below),
				"50.0.88.10.in-addr.arpa. PTR":    "50.0.88.10.in-addr.arpa.\t1\tIN\tPTR\tweb-5.web." + strings.TrimSpace(below),
			} {
				t.Run(strings.Join([]string{listen, network, question}, " "), func(t *testing.T) {
					n := startFollowing(t, Config{Listen: []netip.AddrPort{netip.MustParseAddrPort(listen)}}, nil)
					_, port, _ := net.SplitHostPort(n.addr)
					m := exchange(t, network, "127.0.0.1:"+port, ask(t, question))
					if len(m.Answer) != 1 || m.Answer[0].String() != want || !m.Authoritative {
						t.Errorf("got %v\nwant %s", m, want)
					}
					// From now on the zone has it.
					exchange(t, network, "127.0.0.1:"+port, ask(t, question))
					if asked := n.asksFor(); len(asked) != 1 {
						t.Errorf("followed %v, want it once", asked)
					}
				})
			}
		}
	}
}

func TestDigOfAnUnfollowedName(t *testing.T) {
	dig, err := exec.LookPath("dig")
	if err != nil {
		t.Skip("needs dig")
	}
	for _, question := range [][]string{{"web-5.web.default.svc.cluster.local"}, {"+tcp", "web.default.svc.cluster.local"}} {
		n := startFollowing(t, Config{}, nil)
		host, port, _ := strings.Cut(n.addr, ":")
		args := append([]string{"@" + host, "-p", port, "+tries=1", "+time=30", "+short"}, question...)
		out, err := exec.CommandContext(t.Context(), dig, args...).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != "10.88.0.50" {
			t.Errorf("dig %v: %q, %v", question, got, err)
		}
	}
}

// TestASetIsFollowedOnceHoweverManyWait holds many questions for one set.
func TestASetIsFollowedOnceHoweverManyWait(t *testing.T) {
	const each = 20
	goOn := make(chan struct{})
	n := startFollowing(t, Config{}, func(ctx context.Context, _ Interest) error {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	var wg sync.WaitGroup
	for range each {
		for _, question := range []string{"web-5.web.default.svc.cluster.local. A", "web.default.svc.cluster.local. AAAA"} {
			for _, network := range []string{"udp", "tcp"} {
				wg.Go(func() {
					client := dns.Client{Net: network, Timeout: 2 * time.Minute}
					m, _, err := client.Exchange(ask(t, question), n.addr)
					if err != nil || m.Rcode != dns.RcodeSuccess {
						t.Errorf("%s by %s: %v, %v", question, network, m, err)
					}
				})
			}
		}
	}
	until(t, "all questions are held", func() bool { return n.waiting() == 4*each })
	// Meanwhile all other names are answered, and refused.
	if m := exchange(t, "udp", n.addr, ask(t, "db-0.db.default.svc.cluster.local. A")); len(m.Answer) != 1 {
		t.Errorf("another name: %v", m)
	}
	if m := exchange(t, "udp", n.addr, ask(t, "web-77.web.default.svc.cluster.local. A")); m.Rcode != dns.RcodeNameError {
		t.Errorf("a name that no set has: %v", m)
	}
	// A question that is held and does not wait for the call yet may begin another when this one ended.
	if asked := n.asksFor(); len(asked) != 1 || asked[0] != (Interest{Set: web}) {
		t.Errorf("followed %v, want %v once", asked, web)
	}
	close(goOn)
	wg.Wait()
	if n := counted(n.Server)["held"]; n != 4*each {
		t.Errorf("%v held questions are counted, want %d", n, 4*each)
	}
	n.follows.mu.Lock()
	defer n.follows.mu.Unlock()
	if len(n.follows.calls) != 0 {
		t.Errorf("calls that are left: %v", n.follows.calls)
	}
}

func TestWhatCannotBeFollowedIsNotDenied(t *testing.T) {
	away := errors.New("servers are away")
	tests := map[string]struct {
		follow func(context.Context, Interest) error
		hold   time.Duration
	}{
		"nobody follows":                {},
		"it fails":                      {follow: func(context.Context, Interest) error { return away }},
		"it lasts too long":             {func(ctx context.Context, _ Interest) error { <-ctx.Done(); return nil }, 20 * time.Millisecond},
		"the zone does not show it yet": {follow: func(context.Context, Interest) error { return nil }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, addr := start(t, Config{Follow: tt.follow, hold: tt.hold})
			s.Swap(Build(partly()))
			questions := []string{"web.default.svc.cluster.local. A", "db-all.default.svc.cluster.local. A"}
			if tt.hold == 0 && !strings.HasPrefix(name, "the zone") {
				questions = append(questions, "77.0.88.10.in-addr.arpa. PTR")
			}
			for _, question := range questions {
				for _, network := range []string{"udp", "tcp"} {
					if m := exchange(t, network, addr, ask(t, question)); m.Rcode != dns.RcodeServerFailure || len(m.Ns) != 0 {
						t.Errorf("%s by %s: got %v, want SERVFAIL", question, network, m)
					}
				}
			}
		})
	}
}

func TestAnAddressThatNobodyHasIsDenied(t *testing.T) {
	n := startFollowing(t, Config{}, nil)
	m := exchange(t, "udp", n.addr, ask(t, "77.0.88.10.in-addr.arpa. PTR"))
	if m.Rcode != dns.RcodeNameError || len(m.Ns) != 1 || !m.Authoritative {
		t.Errorf("got %v, want NXDOMAIN with the SOA", m)
	}
	if want := (Interest{Address: netip.MustParseAddr("10.88.0.77")}); !slices.Equal(n.asksFor(), []Interest{want}) {
		t.Errorf("followed %v, want %v", n.asksFor(), want)
	}
}

// TestAServiceOfManySetsWaitsForAll asks for one of two sets that are whole and of two that are not.
func TestAServiceOfManySetsWaitsForAll(t *testing.T) {
	n := startFollowing(t, Config{}, nil)
	third := records.SetNames{Ref: spec.SetRef{Namespace: "default", Name: "third"}, Service: "db-all", End: 1}
	n.mu.Lock()
	n.snapshot.Others = append(n.snapshot.Others, third)
	n.Swap(Build(n.snapshot))
	n.mu.Unlock()
	m := exchange(t, "udp", n.addr, ask(t, "db-all.default.svc.cluster.local. A"))
	if asked := n.asksFor(); len(asked) != 2 || len(m.Answer) != 4 {
		t.Errorf("followed %v, and answered %v; want two sets, and the members of four", asked, m)
	}
}

func TestSetsThatWereAskedForAreReported(t *testing.T) {
	var got []string
	s, addr := start(t, Config{})
	reporter, err := New(Config{Listen: []netip.AddrPort{anyPort}, Asked: func(ref spec.SetRef) { got = append(got, ref.String()) }})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := partly()
	snapshot.Others = nil
	zone := Build(snapshot)
	s.Swap(zone)
	report := func() string {
		got = nil
		reporter.reportAsked()
		slices.Sort(got)
		return strings.Join(got, " ")
	}
	for _, step := range []struct{ network, question, want string }{
		{"udp", "nobody.default.svc.cluster.local. A", ""},
		{"udp", "db-0.db.default.svc.cluster.local. A", "default/db"},
		{"tcp", "db.default.svc.cluster.local. TXT", "default/db"},
		{"udp", "_client._tcp.down.other.svc.cluster.local. SRV", "other/down"},
		{"udp", "9.0.88.10.in-addr.arpa. PTR", "default/aux"},
		{"tcp", "db-all.default.svc.cluster.local. A", "default/aux default/db"},
		{"udp", "cluster.local. SOA", ""},
	} {
		for range 2 {
			exchange(t, step.network, addr, ask(t, step.question))
		}
		// The set changes before it is reported.
		snapshot.Sequence.Rev++
		for i := range snapshot.Pictures {
			if len(snapshot.Pictures[i].Peers) > 0 {
				snapshot.Pictures[i].Peers[0].Ready = !snapshot.Pictures[i].Peers[0].Ready
			}
		}
		zone = zone.Next(snapshot)
		s.Swap(zone)
		reporter.Swap(zone)
		if got := report(); got != step.want {
			t.Errorf("%s: reported %q, want %q", step.question, got, step.want)
		}
		if got := report(); got != "" {
			t.Errorf("%s: reported again: %q", step.question, got)
		}
	}
}
