package dnsd

import (
	"bytes"
	"net/netip"

	"github.com/stead-project/stead/spec"
)

// missing is what there is of a name below the zone's authority that the zone does not declare.
type missing int

const (
	// absent: no set has the name.
	absent missing = iota
	// empty: it has no records, but there may be names below it.
	empty
	// unfollowed: it may be a name of a set of which only the names are known.
	unfollowed
)

// Interest is what must be known to answer a question: all of a set, or whose address it is.
// One of the two is zero.
type Interest struct {
	Set     spec.SetRef
	Address netip.Addr
}

// missing judges a wire name whose authority is top, below which it has the first size bytes. It
// allocates nothing. The interest is zero unless the name is unfollowed.
func (z *Zone) missing(name []byte, top *origin, size int) (missing, Interest) {
	switch {
	case z.others == nil:
		return absent, Interest{}
	case top.members:
		what, addr := reverseAddress(name)
		return what, Interest{Address: addr}
	case top.domain:
		return z.missingBelow(name[:size])
	}
	return absent, Interest{}
}

// missingBelow judges a name by its labels below the domain.
func (z *Zone) missingBelow(name []byte) (missing, Interest) {
	const most = 5 // _port._proto.service.namespace.svc
	var at [most]int
	n := 0
	for i := 0; i < len(name); i += 1 + int(name[i]) {
		if n == most {
			return absent, Interest{}
		}
		at[n] = i
		n++
	}
	if n < 2 || string(name[at[n-1]:]) != "\x03svc" {
		return absent, Interest{}
	}
	if n == 2 {
		if len(z.others.find(name[:at[1]])) > 0 {
			return empty, Interest{}
		}
		return absent, Interest{}
	}
	service := n == 3 || name[1] == '_' && (n == 4 || name[at[1]+1] == '_') // or a name of its ports
	for _, o := range z.others.find(name[at[n-3]:at[n-1]]) {
		if !z.follows(o.set) && (service || n == 4 && o.hasMember(name[1:at[1]])) {
			return unfollowed, Interest{Set: o.set}
		}
	}
	return absent, Interest{}
}

const (
	reverse4 = "\x07in-addr\x04arpa\x00"
	reverse6 = "\x03ip6\x04arpa\x00"
)

// reverseAddress reads a reverse name; those above the names of whole addresses are empty.
func reverseAddress(name []byte) (missing, netip.Addr) {
	if labels, ok := bytes.CutSuffix(name, []byte(reverse4)); ok {
		var octets [4]byte
		n, ok := reverseDigits(labels, 10, 3, octets[:])
		switch {
		case !ok:
			return absent, netip.Addr{}
		case n < len(octets):
			return empty, netip.Addr{}
		}
		return unfollowed, netip.AddrFrom4(octets)
	}
	labels, _ := bytes.CutSuffix(name, []byte(reverse6))
	var nibbles [32]byte
	n, ok := reverseDigits(labels, 16, 1, nibbles[:])
	switch {
	case !ok:
		return absent, netip.Addr{}
	case n < len(nibbles):
		return empty, netip.Addr{}
	}
	var octets [16]byte
	for i := range octets {
		octets[i] = nibbles[2*i]<<4 | nibbles[2*i+1]
	}
	return unfollowed, netip.AddrFrom16(octets)
}

// reverseDigits reads one number of a label, of at most so many digits, and writes them to the end of
// to, the first one last. It returns how many there are; false: they are no such numbers.
func reverseDigits(labels []byte, base, most int, to []byte) (n int, ok bool) {
	for i := 0; i < len(labels); i += 1 + int(labels[i]) {
		v, ok := number(labels[i+1:i+1+int(labels[i])], base, most)
		if !ok || v > 255 || n == len(to) {
			return 0, false
		}
		n++
		to[len(to)-n] = byte(v)
	}
	return n, true
}

// number reads a number as it is written in names: at most so many lower-case digits, no needless zero.
func number(digits []byte, base, most int) (int, bool) {
	if len(digits) == 0 || len(digits) > most || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		digit := base
		switch {
		case c >= '0' && c <= '9':
			digit = int(c - '0')
		case c >= 'a' && c <= 'f':
			digit = int(c-'a') + 10
		}
		if digit >= base {
			return 0, false
		}
		n = n*base + digit
	}
	return n, true
}
