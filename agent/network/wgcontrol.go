package network

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/agent/wireguard"
)

// settings are the link, its peers, and the ways of members' answers; none: there is no link.
func (w wireLink) settings(h *netlink.Handle) (list []Setting) {
	link, err := h.LinkByName(w.wireName())
	if err != nil {
		return nil
	}
	in := "of the kernel"
	if link.Type() != "wireguard" {
		in = "of the process " + wireguard.Program
	}
	d, err := w.device()
	if err != nil {
		return []Setting{{"link", fmt.Sprintf("%s alias %s: WireGuard %s", w.wireName(), w.wireAlias(), in), false}}
	}
	list = []Setting{
		{"link", fmt.Sprintf("%s alias %s: WireGuard %s, UDP port %d", w.wireName(), w.wireAlias(), in, d.ListenPort), true},
	}
	slices.SortFunc(d.Peers, func(a, b wgtypes.Peer) int { return strings.Compare(a.Endpoint.String(), b.Endpoint.String()) })
	for _, p := range d.Peers {
		last := "no exchange of keys yet"
		if !p.LastHandshakeTime.IsZero() {
			last = "keys exchanged " + time.Since(p.LastHandshakeTime).Round(time.Second).String() + " ago"
		}
		text := fmt.Sprintf("%s at %s: may send from %d addresses; %s", p.PublicKey, p.Endpoint, len(p.AllowedIPs), last)
		list = append(list, Setting{"peer", text, true})
	}
	answers := answerWays(w)
	if rules, err := h.RuleListFiltered(netlink.FAMILY_V4, answers.rule(), netlink.RT_FILTER_TABLE); err == nil && len(rules) > 0 {
		list = append(list, Setting{"rule", fmt.Sprintf("from %s lookup %d", w.cfg.CIDR, answers.table()), true})
	}
	return list
}

// device is what the link has of keys and peers.
func (w wireLink) device() (*wgtypes.Device, error) {
	return w.control(func(c *wgctrl.Client) (*wgtypes.Device, error) { return c.Device(w.wireName()) })
}

// controlTime is how long a process may take to answer.
const controlTime = 5 * time.Second

// control calls f with what reads and sets keys and peers. A process that is frozen is not waited for.
func (w wireLink) control(f func(*wgctrl.Client) (*wgtypes.Device, error)) (*wgtypes.Device, error) {
	type answer struct {
		d   *wgtypes.Device
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		err := inNamespace(w.cfg.NetNS, func() error {
			c, err := wgctrl.New()
			if err != nil {
				return err
			}
			defer c.Close()
			a.d, err = f(c)
			return err
		})
		a.err = err
		answered <- a
	}()
	select {
	case a := <-answered:
		return a.d, a.err
	case <-time.After(controlTime):
		return nil, fmt.Errorf("no answer within %s", controlTime)
	}
}
