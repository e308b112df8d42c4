package network

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/nftables"
)

// command runs a program in a namespace.
func command(t *testing.T, netns string, argv ...string) {
	t.Helper()
	must(t, inNamespace(netns, func() error {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			t.Logf("%v: %s", argv, out)
		}
		return err
	}))
}

func TestADroppingForwardPolicyIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, program string
		want          []string
	}{
		{"of nft", "", []string{"nft chain FORWARD of table filter drops", "10.88.0.0/16"}},
		{"of iptables-nft", "iptables-nft", []string{"nft chain FORWARD of table filter drops"}},
		{"of iptables-legacy", "iptables-legacy", []string{"iptables-legacy's chain FORWARD drops", "10.88.0.0/16"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, h := host(t, nil)
			must(t, n.Setup(t.Context()))
			quiet := func(when string) {
				t.Helper()
				if w, err := n.Warnings(); err != nil || len(w) != 0 {
					t.Errorf("%s: got %q, %v; want no warning", when, w, err)
				}
			}
			quiet("at first")
			drop := func() { dropByNFT(t, n) }
			if c.program != "" {
				if _, err := exec.LookPath(c.program); err != nil {
					t.Skip("needs " + c.program + " (Debian package iptables)")
				}
				// A rule before the policy, so that it is not at the table's begin.
				command(t, h, c.program, "-A", "FORWARD", "-s", "192.0.2.0/24", "-p", "tcp", "--dport", "1:9", "-j", "DROP")
				command(t, h, c.program, "-P", "INPUT", "DROP")
				quiet("with a policy of another chain, and a rule")
				drop = func() { command(t, h, c.program, "-P", "FORWARD", "DROP") }
			}
			drop()
			w, err := n.Warnings()
			if err != nil || len(w) != 1 {
				t.Fatalf("got %q, %v; want one warning", w, err)
			}
			for _, part := range c.want {
				if !strings.Contains(w[0], part) {
					t.Errorf("got %q; want %q in it", w[0], part)
				}
			}
		})
	}
}

func dropByNFT(t *testing.T, n *Network) {
	t.Helper()
	drop := nftables.ChainPolicyDrop
	must(t, n.nft(func(c *nftables.Conn) error {
		table := c.AddTable(&nftables.Table{Name: "filter", Family: nftables.TableFamilyIPv4})
		c.AddChain(&nftables.Chain{Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
		return c.Flush()
	}))
}
