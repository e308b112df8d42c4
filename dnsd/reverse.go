package dnsd

import (
	"net/netip"
	"strconv"
	"strings"
)

// reverseOrigins names the reverse zones that cover a range exactly: DNS can cut
// only at whole octets (IPv6: nibbles), so a /20 is sixteen zones of a /24 each.
func reverseOrigins(r netip.Prefix) []string {
	if !r.IsValid() || r.Bits() == 0 {
		return nil
	}
	r = netip.PrefixFrom(r.Addr().Unmap(), r.Bits()).Masked()
	step := 8
	if r.Addr().Is6() {
		step = 4
	}
	bits := (r.Bits() + step - 1) / step * step
	var names []string
	for i := range 1 << (bits - r.Bits()) {
		raw := r.Addr().AsSlice()
		raw[(bits-1)/8] |= byte(i << ((8 - bits%8) % 8))
		addr, _ := netip.AddrFromSlice(raw)
		names = append(names, reverseName(addr, bits))
	}
	return names
}

// reverseName is the in-addr.arpa or ip6.arpa name of the first bits of an
// address; bits are whole octets (IPv6: nibbles).
func reverseName(addr netip.Addr, bits int) string {
	var labels []string
	raw := addr.AsSlice()
	if addr.Is4() {
		for i := bits/8 - 1; i >= 0; i-- {
			labels = append(labels, strconv.Itoa(int(raw[i])))
		}
		return strings.Join(append(labels, "in-addr.arpa."), ".")
	}
	for i := bits/4 - 1; i >= 0; i-- {
		nibble := raw[i/2] >> 4
		if i%2 == 1 {
			nibble = raw[i/2] & 15
		}
		labels = append(labels, strconv.FormatInt(int64(nibble), 16))
	}
	return strings.Join(append(labels, "ip6.arpa."), ".")
}
