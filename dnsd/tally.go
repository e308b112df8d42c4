package dnsd

import (
	"strconv"
	"sync/atomic"

	"github.com/miekg/dns"
)

// kinds are the types of questions that are counted apart; the last is any other.
var kinds = [...]string{"A", "AAAA", "SRV", "PTR", "TXT", "SOA", "NS", "other"}

// kindOf is the place of a question's type in kinds.
func kindOf(qtype uint16) int {
	switch qtype {
	case dns.TypeA:
		return 0
	case dns.TypeAAAA:
		return 1
	case dns.TypeSRV:
		return 2
	case dns.TypePTR:
		return 3
	case dns.TypeTXT:
		return 4
	case dns.TypeSOA:
		return 5
	case dns.TypeNS:
		return 6
	}
	return len(kinds) - 1
}

// rcodes is how many answer codes are counted: those of the header.
const rcodes = 16

// tally counts answers. Each socket that answers usual questions has its own, so that
// none waits for another; a scrape adds them up.
type tally struct {
	answers   [len(kinds)][rcodes]atomic.Uint64
	forwarded atomic.Uint64
	held      [2]atomic.Uint64 // of questions for unfollowed names: answered, failed
}

func (t *tally) addHeld(rcode int) {
	result := 0
	if rcode == dns.RcodeServerFailure {
		result = 1
	}
	t.held[result].Add(1)
}

func (t *tally) add(qtype uint16, rcode int) { t.answers[kindOf(qtype)][rcode%rcodes].Add(1) }

// Counts are what a server has answered since it was made.
type Counts struct {
	Answers []AnswerCount `json:"answers"`
	// Forwarded are the questions for names that are not members', handed on to the host's name servers.
	Forwarded uint64 `json:"forwarded"`
	// Held and Failed are the questions for names of sets that the node does not follow: answered, and not.
	Held   uint64 `json:"held"`
	Failed uint64 `json:"failed"`
	// Names are those that are answered from the zone in use.
	Names int `json:"names"`
}

// AnswerCount is how many questions of one type were answered with one code, at least one.
type AnswerCount struct {
	Type  string `json:"type"`
	Rcode string `json:"rcode"`
	Count uint64 `json:"count"`
}

// Counts takes no lock that answering takes.
func (s *Server) Counts() Counts {
	c := Counts{Forwarded: s.slow.forwarded.Load(), Held: s.slow.held[0].Load(), Failed: s.slow.held[1].Load()}
	tallies := []*tally{&s.slow}
	if packed := s.packed.Load(); packed != nil {
		tallies = append(tallies, *packed...)
	}
	for k, kind := range kinds {
		for r := range rcodes {
			n := uint64(0)
			for _, t := range tallies {
				n += t.answers[k][r].Load()
			}
			if n > 0 {
				c.Answers = append(c.Answers, AnswerCount{Type: kind, Rcode: rcodeName(r), Count: n})
			}
		}
	}
	if z := s.zone.Load(); z != nil {
		c.Names = len(z.nodes)
	}
	return c
}

func rcodeName(rcode int) string {
	if name, ok := dns.RcodeToString[rcode]; ok {
		return name
	}
	return strconv.Itoa(rcode)
}
