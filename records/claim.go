package records

import "time"

// Claim is what a member says of itself, in /run/stead/self. It may order updates and choose for names; it proves
// nothing of a life or a volume (SAFETY S21). The zero value is nothing.
type Claim struct {
	// Note is for its peers and for people.
	Note string `json:"note,omitempty"`
	// Leads: it says that it leads, in Term.
	Leads bool   `json:"leads,omitempty"`
	Term  uint64 `json:"term,omitempty"`
	// Busy is why it should not be stopped; "": it may be.
	Busy string `json:"busy,omitempty"`
	// BusyFor is for how long it has been busy, as its node counts it: in whole minutes, at most a day.
	BusyFor time.Duration `json:"busyFor,omitempty"`
}

// The bounds of the texts of a Claim, in bytes.
const (
	MaxNote = 1024
	MaxBusy = 256
)

// And is what a member says whose containers say c and, after it, next: the higher term counts, and the first text.
func (c Claim) And(next Claim) Claim {
	if next.Leads && (!c.Leads || next.Term > c.Term) {
		c.Leads, c.Term = true, next.Term
	}
	if c.Note == "" {
		c.Note = next.Note
	}
	if c.Busy == "" {
		c.Busy = next.Busy
	}
	return c
}

// Leader is the ordinal of the member that leads, or NoOrdinal: of those that are ready and say so, the one with the highest
// term. With two of that term nobody leads, until one says so no more.
func Leader(peers []Peer) (ordinal int, leads bool) {
	var best *Peer
	for i := range peers {
		p := &peers[i]
		switch {
		case !p.Leads || !p.Ready:
		case best == nil || p.Term > best.Term:
			best, leads = p, true
		case p.Term == best.Term:
			leads = false
		}
	}
	if !leads {
		return NoOrdinal, false
	}
	return best.Ordinal, true
}
