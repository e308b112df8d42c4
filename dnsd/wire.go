package dnsd

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// The way of a usual question, without a message in between: the answer is
// written behind the question, in the buffer in which it came.

// Flags of the header's second word.
const (
	flagResponse      = 1 << 15
	flagAuthoritative = 1 << 10
	flagRecursion     = 1 << 8 // desired
	flagAvailable     = 1 << 7 // recursion
	flagAuthentic     = 1 << 5 // in a question: the asker knows this flag; nothing to us
	flagUnchecked     = 1 << 4
)

const (
	headerSize = 12
	optSize    = 11 // of an OPT record without options
	optDo      = 1 << 15
)

// Question types from here on are no records (RFC 6895).
const firstMeta, lastMeta = 128, 255

// respond answers the question in buf[:n], as it came over UDP, in place; buf
// must have room for maxUDP bytes. It returns the length of the answer, which is
// the same that Answer gives, and the question's type, or 0 for a question that is not usual: then buf is
// as before, and the question must go to Answer. It allocates nothing.
func (z *Zone) respond(buf []byte, n int) (size int, qtype uint16) {
	q, ok := readQuestion(buf[:n])
	if !ok {
		return 0, 0
	}
	var low [255]byte
	name := lower(low[:], buf[headerSize:q.nameEnd])

	var body []byte
	var answers, authorities, extra int
	rcode := uint16(dns.RcodeSuccess)
	node := z.nodes[string(name)]
	var set *rrset
	if node != nil {
		set = node.find(q.kind)
	}
	if set != nil {
		if set.wire == nil {
			return 0, 0
		}
		body, answers, extra = set.wire, len(set.rrs), len(set.extra)
	} else if node != nil && node.find(dns.TypeCNAME) != nil {
		return 0, 0 // what its target has is looked up, too
	} else {
		o, below := z.authority(name)
		if o == nil || o.wire == nil {
			return 0, 0
		}
		body, authorities = o.wire, 1
		if node == nil {
			switch what, _ := z.missing(name, o, below); what {
			case unfollowed:
				return 0, 0
			case absent:
				rcode = dns.RcodeNameError
			}
		}
	}

	end := q.end + len(body)
	if q.edns {
		end += optSize
		extra++
	}
	if end > q.limit {
		return 0, 0
	}
	if node != nil {
		node.mark()
	}
	flags := flagResponse | flagAuthoritative | flagAvailable | q.flags&(flagRecursion|flagUnchecked) | rcode
	binary.BigEndian.PutUint16(buf[2:], flags)
	binary.BigEndian.PutUint16(buf[6:], uint16(answers))
	binary.BigEndian.PutUint16(buf[8:], uint16(authorities))
	binary.BigEndian.PutUint16(buf[10:], uint16(extra))
	copy(buf[q.end:], body)
	if q.edns {
		writeOPT(buf[end-optSize:end], q.do)
	}
	return end, q.kind
}

// question is a usual one: a standard query for one name and type of the Internet
// class, with nothing after it but EDNS without options.
type question struct {
	flags   uint16
	kind    uint16
	nameEnd int // offset
	end     int // offset of what follows the question
	edns    bool
	do      bool // DNSSEC records wanted; only sent back
	limit   int  // bytes that the asker takes
}

// readQuestion reads a question; false: it is not usual.
func readQuestion(b []byte) (q question, ok bool) {
	const least = headerSize + 1 + 4
	if len(b) < least {
		return q, false
	}
	q.flags = binary.BigEndian.Uint16(b[2:])
	extra := binary.BigEndian.Uint16(b[10:])
	if q.flags&^(flagRecursion|flagAuthentic|flagUnchecked) != 0 || extra > 1 ||
		binary.BigEndian.Uint32(b[4:]) != 1<<16 || binary.BigEndian.Uint16(b[8:]) != 0 {
		return q, false
	}
	at := headerSize
	for b[at] != 0 {
		if b[at] > 63 { // a pointer, or nothing that is known
			return q, false
		}
		at += 1 + int(b[at])
		if at >= len(b) {
			return q, false
		}
	}
	q.nameEnd, q.end = at+1, at+5
	if q.nameEnd-headerSize > 255 || len(b) != q.end+int(extra)*optSize {
		return q, false
	}
	q.kind = binary.BigEndian.Uint16(b[q.nameEnd:])
	if q.kind >= firstMeta && q.kind <= lastMeta || binary.BigEndian.Uint16(b[q.nameEnd+2:]) != dns.ClassINET {
		return q, false
	}
	q.limit = dns.MinMsgSize
	if extra == 1 {
		return q, q.readOPT(b[q.end:])
	}
	return q, true
}

// readOPT reads the record behind the question; false: it is not usual EDNS.
func (q *question) readOPT(b []byte) bool {
	if b[0] != 0 || binary.BigEndian.Uint16(b[1:]) != dns.TypeOPT ||
		binary.BigEndian.Uint32(b[5:])&^optDo != 0 || binary.BigEndian.Uint16(b[9:]) != 0 {
		return false
	}
	q.edns = true
	q.do = binary.BigEndian.Uint32(b[5:]) == optDo
	q.limit = udpLimit(binary.BigEndian.Uint16(b[3:]))
	return true
}

// udpLimit is the length of a UDP answer to an asker that takes so much by EDNS.
func udpLimit(asked uint16) int {
	return min(max(int(asked), dns.MinMsgSize), maxUDP)
}

func writeOPT(b []byte, do bool) {
	clear(b)
	binary.BigEndian.PutUint16(b[1:], dns.TypeOPT)
	binary.BigEndian.PutUint16(b[3:], maxUDP)
	if do {
		b[7] = optDo >> 8
	}
}

// lower copies a wire name in lower case. Lengths of labels are below any letter.
func lower(to, name []byte) []byte {
	to = to[:len(name)]
	for i, c := range name {
		if c-'A' < 26 {
			c |= 0x20
		}
		to[i] = c
	}
	return to
}

// pack packs the set as it follows a question of its name: there the owner is
// spelled as the asker spelled it.
func (s *rrset) pack() {
	s.wire = nil
	var out []byte
	for _, rr := range s.rrs {
		b := packRR(rr)
		if b == nil {
			return
		}
		at := 0
		for b[at] != 0 {
			at += 1 + int(b[at])
		}
		out = append(out, 0xc0, headerSize)
		out = append(out, b[at+1:]...)
		if len(out) > maxUDP {
			return
		}
	}
	for _, rr := range s.extra {
		b := packRR(rr)
		out = append(out, b...)
		if b == nil || len(out) > maxUDP {
			return
		}
	}
	s.wire = out
}

// packRR packs one record without compression; nil: it does not pack.
func packRR(rr dns.RR) []byte {
	b := make([]byte, dns.Len(rr))
	end, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		return nil
	}
	return b[:end]
}
