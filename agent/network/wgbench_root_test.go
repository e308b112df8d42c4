package network

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

// TestWhatTheTunnelsCost measures one connection between members of two hosts by each way, one after the other, in rounds, and logs the
// medians: bytes a second, and the time until an answer. docs/OPERATIONS.md has their ratios. It asserts only that all arrive.
func TestWhatTheTunnelsCost(t *testing.T) {
	g := newGuarded(t, ModeVXLAN, false)
	g.announce(t)
	for _, n := range g.net {
		must(t, n.Admit(g.host[:]))
	}
	rates, waits := map[string][]float64{}, map[string][]float64{}
	rounds := 1
	if testing.Verbose() {
		rounds = 5
	}
	for range rounds {
		for _, kind := range []string{records.TunnelVXLAN, records.TunnelBoth} {
			g.use(t, kind)
			g.settle(t, map[string]func(*Network) string{records.TunnelVXLAN: vxlanOf, records.TunnelBoth: wireOf}[kind])
			rate, wait := g.measure(t)
			rates[kind], waits[kind] = append(rates[kind], rate), append(waits[kind], wait)
		}
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	t.Logf("throughput: VXLAN %.0f MB/s, WireGuard %.0f MB/s, ratio %.2f", median(rates[records.TunnelVXLAN])/1e6, median(rates[records.TunnelBoth])/1e6,
		median(rates[records.TunnelBoth])/median(rates[records.TunnelVXLAN]))
	t.Logf("answer: VXLAN %.0f us, WireGuard %.0f us, ratio %.2f", median(waits[records.TunnelVXLAN])*1e6, median(waits[records.TunnelBoth])*1e6,
		median(waits[records.TunnelBoth])/median(waits[records.TunnelVXLAN]))
}

// measure sends 64 MiB from the first member to the second, and then single bytes that are answered: bytes a second, and the median
// of seconds until an answer.
func (g *guarded) measure(t *testing.T) (rate, wait float64) {
	t.Helper()
	const size, asks = 64 << 20, 500
	var l net.Listener
	must(t, inNamespace(g.member[1], func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(g.address[1], 9).String())
		return err
	}))
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.CopyN(io.Discard, c, size)
		c.Write([]byte{1})
		io.Copy(c, c)
	}()
	var c net.Conn
	must(t, inNamespace(g.member[0], func() (err error) {
		c, err = net.DialTimeout("tcp4", netip.AddrPortFrom(g.address[1], 9).String(), time.Minute)
		return err
	}))
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	began, b := time.Now(), make([]byte, 1)
	_, err := c.Write(make([]byte, size))
	must(t, err)
	_, err = io.ReadFull(c, b)
	must(t, err)
	rate = size / time.Since(began).Seconds()
	var list []float64
	for range asks {
		began := time.Now()
		_, err := c.Write(b)
		must(t, err)
		_, err = io.ReadFull(c, b)
		must(t, err)
		list = append(list, time.Since(began).Seconds())
	}
	slices.Sort(list)
	return rate, list[asks/2]
}
