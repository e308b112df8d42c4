package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// hostPort reads one as it is written: 80/TCP or 192.0.2.1:80/UDP.
func hostPort(t *testing.T, text string) spec.HostPort {
	t.Helper()
	at, protocol, _ := strings.Cut(text, "/")
	p := spec.HostPort{Protocol: protocol}
	if number, err := strconv.ParseUint(at, 10, 16); err == nil {
		p.Port = uint16(number)
		return p
	}
	where, err := netip.ParseAddrPort(at)
	if err != nil {
		t.Fatal(err)
	}
	p.Address, p.Port = where.Addr(), where.Port()
	return p
}

// TestAStartInTheNetworkOfTheHost: the life has the node's address, the identity keeps what it has of its own, needs none,
// and where members have ports each is on a node of its own.
func TestAStartInTheNetworkOfTheHost(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		own        bool // the identity has an address
		port       bool
		nodes      []string
		silent     int // this many of the nodes say no address
		want       string
	}{
		{"it has the node's", "parallel 1 0:over", false, false, []string{"a"}, 0, "192.0.2.1 own=invalid IP"},
		{"it keeps its own", "parallel 1 0:over", true, false, []string{"a"}, 0, "192.0.2.1 own=10.88.0.1"},
		{"not on a node without an address", "parallel 1 0:over", false, false, []string{"a", "b"}, 1, "192.0.2.2 own=invalid IP"},
		{"on no node", "parallel 1 0:over", false, false, []string{"a"}, 1,
			"no node can take it: node a does not say its address, which hostNetwork requires: start its agent with --address"},
		{"two without ports", "parallel 2 0:over 1:over", false, false, []string{"a"}, 0, "192.0.2.1 own=invalid IP 192.0.2.1 own=invalid IP"},
		{"two with one", "parallel 2 0:over 1:over", false, true, []string{"a"}, 0,
			"192.0.2.1 own=invalid IP no node can take it: node a has its host port 80/TCP taken by default/db-0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := grounds(t, tt.line, "terminationGracePeriodSeconds: 5", tt.nodes...)
			w.Free = nil
			s := &w.Set.Spec.Template.Spec
			s.HostNetwork = true
			if tt.port {
				s.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80}}
			}
			for _, r := range w.Revisions {
				r.Template = w.Set.Spec.Template
			}
			for i := range w.Nodes {
				if i >= tt.silent {
					w.Nodes[i].Facts.HostIP = fmt.Sprintf("192.0.2.%d", i+1)
				}
			}
			for i := range w.Slots {
				w.Slots[i].Identity.Address = netip.Addr{}
				if tt.own {
					w.Slots[i].Identity.Address = netip.MustParseAddr("10.88.0.1")
				}
			}
			var got []string
			out := Next(w)
			for _, a := range out.Actions {
				if start, ok := a.(Start); ok {
					got = append(got, fmt.Sprintf("%s own=%s", start.Member.Address, start.Identity.Address))
					if !start.Member.HostNetwork || start.NewAddress {
						t.Errorf("started as %+v, new address: %v", start.Member, start.NewAddress)
					}
				}
			}
			for _, b := range out.Blocked {
				if b.Reason == causes.BlockedHostPort || b.Reason == causes.BlockedNoNode {
					got = append(got, b.Text)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got  %v\nwant %s\nblocked %+v", got, tt.want, out.Blocked)
			}
		})
	}
}

// TestHostPortsShareNoNode starts members that ask for a host port and tells their nodes,
// or the last reason why there is none.
func TestHostPortsShareNoNode(t *testing.T) {
	tests := []struct {
		name, line, port string
		nodes            []string
		want             string
	}{
		{"a node where it is free", "parallel 1", "80/TCP", []string{"a c-0:port=80/TCP", "b c-1"}, "b"},
		{"another protocol is another port", "parallel 1", "80/TCP", []string{"a c-0:port=80/UDP"}, "a"},
		{"another number is another port", "parallel 1", "80/TCP", []string{"a c-0:port=81/TCP"}, "a"},
		{"another address is another port", "parallel 1", "192.0.2.1:80/TCP", []string{"a c-0:port=192.0.2.2:80/TCP"}, "a"},
		{"each address is one of all", "parallel 1", "80/TCP", []string{"a c-0:port=192.0.2.2:80/TCP"},
			"HostPortTaken: no node can take it: node a has its host port 192.0.2.2:80/TCP taken by default/c-0"},
		{"all addresses hold each", "parallel 1", "192.0.2.1:80/TCP", []string{"a c-0:port=80/TCP"},
			"HostPortTaken: no node can take it: node a has its host port 80/TCP taken by default/c-0"},
		{"who is taken at the same time", "parallel 3", "80/TCP", []string{"a", "b"},
			"a b HostPortTaken: no node can take it: node a has its host port 80/TCP taken by default/db-0; node b has its host port 80/TCP taken by default/db-1"},
		{"its own port does not keep a member away", "parallel 1 0:over", "80/TCP", []string{"n1 db-0:port=80/TCP"}, "n1"},
		{"a port that is taken is told beside what else is wrong", "parallel 1", "80/TCP", []string{"a c-0:port=80/TCP", "b taint=x=y:NoSchedule"},
			"HostPortTaken: no node can take it: node a has its host port 80/TCP taken by default/c-0; node b has the taint x=y:NoSchedule, which is not tolerated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := grounds(t, tt.line, "terminationGracePeriodSeconds: 5", tt.nodes...)
			p := hostPort(t, tt.port)
			asked := spec.ContainerPort{ContainerPort: 80, Protocol: p.Protocol, HostPort: int32(p.Port)}
			if p.Address.IsValid() {
				asked.HostIP = p.Address.String()
			}
			w.Set.Spec.Template.Spec.Containers[0].Ports = []spec.ContainerPort{asked}
			var got []string
			out := Next(w)
			for _, a := range out.Actions {
				if start, ok := a.(Start); ok {
					got = append(got, string(start.Member.Node))
				}
			}
			for _, b := range out.Blocked {
				if b.Reason == causes.BlockedHostPort {
					got = append(got, string(b.Reason)+": "+b.Text)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got  %v\nwant %s", got, tt.want)
			}
		})
	}
}
