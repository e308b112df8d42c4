// Package quorum is PURE: how the store's members become more and fewer, without ever
// losing a vote that was given.
package quorum

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
)

// JoinStep is what comes next for a server that joins.
type JoinStep int

// The steps.
const (
	Refuse JoinStep = iota // with a sentence
	Add                    // to the store's members, as a learner
	Start                  // it was added, and never started
)

// Join says what comes next for a server without any data of the store: known is the record
// of its name, nil if there is none. A member that once started has acknowledged writes and
// may have voted: without its data it must not come back (SAFETY S8).
func Join(known *records.Server, members []stores.StoreMember, self records.Server) (JoinStep, string) {
	lost := fmt.Sprintf("server %s is a member of the store, and its data is not in this directory: bring the directory back, "+
		"or run 'stead server replace %s' on another server and join with the token that it prints", self.Name, self.Name)
	if known != nil && known.UID != self.UID {
		return Refuse, lost
	}
	for _, m := range members {
		switch {
		case m.Name == self.Name:
			return Refuse, lost
		case m.Peer != self.Peer:
		case m.Name == "" && known != nil && known.Peer == self.Peer:
			return Start, ""
		default:
			return Refuse, fmt.Sprintf("another member of the store has the address %s; give --peer-listen another one", self.Peer)
		}
	}
	return Add, ""
}

// MayRemove says why the member id must not be removed; "": it may. alive are the members
// whose servers can be reached.
func MayRemove(members []stores.StoreMember, alive map[string]bool, id string) string {
	voters, left, leftAlive, nowAlive, learner := 0, 0, 0, 0, false
	for _, m := range members {
		switch {
		case m.Learner:
			learner = learner || m.ID == id
			continue
		case m.ID != id:
			left++
			if alive[m.ID] {
				leftAlive++
			}
		}
		voters++
		if alive[m.ID] {
			nowAlive++
		}
	}
	switch {
	case nowAlive < majority(voters):
		return fmt.Sprintf("%d of %d servers can be reached, and the store needs %d to change anything: start the others first", nowAlive, voters, majority(voters))
	case learner:
		return ""
	case left == 0:
		return "it is the only server: the store would be lost"
	case leftAlive < majority(left):
		return fmt.Sprintf("of the %d servers that stay, %d can be reached, and the store would need %d: members would run on, and nothing could be changed; start or replace the others first", left, leftAlive, majority(left))
	}
	return ""
}

// Lost says what to do when the members that are alive are no majority; "": they are one.
func Lost(members []stores.StoreMember, alive map[string]bool) string {
	voters, up := 0, 0
	var missing []string
	for _, m := range members {
		switch {
		case m.Learner:
			continue
		case alive[m.ID]:
			up++
		default:
			missing = append(missing, fmt.Sprintf("%s (%s)", m.Name, m.Peer))
		}
		voters++
	}
	if up >= majority(voters) {
		return ""
	}
	return fmt.Sprintf(stores.NoMajority+": %d of its %d servers can be reached, and %d are needed; not reachable: %s. Members run on, and nothing can be changed. "+
		"Start these servers; if the data of most is lost for good, 'stead server recover --help' says what to do",
		up, voters, majority(voters), strings.Join(missing, ", "))
}

// SetBack says why the data of a member, which is at have, must not be used any more, when it had come as far as was, and had acknowledged
// all of acked to leaders; "": it may. It would forget votes and writes that it had confirmed (SAFETY S8). What it has acknowledged in a term
// is in its log for as long as that is of no later term: a later leader may have replaced what was never confirmed.
func SetBack(server string, have, was stores.Mark, acked []stores.Mark) string {
	for _, a := range acked {
		if have.Term < a.Term || have.Term == a.Term && have.Index < a.Index {
			was = was.Or(a)
		}
	}
	if have.Term >= was.Term && have.Index >= was.Index {
		return ""
	}
	return fmt.Sprintf("the data of this server's store went back: it is at write %d of term %d, and was at %d of %d; an old copy of it was put in place. It must not be used, "+
		"for it has forgotten votes and writes that it had confirmed: run 'stead server replace %s' on another server, move the data directory away, "+
		"and join with the token that is printed", have.Index, have.Term, was.Index, was.Term, server)
}

// Noted is what is kept of how far members of the store have come: what was kept, and what was seen at the look before this one, for
// a member uses a write a moment before that is in its own log. seen is what is seen now, members are those of the store; of others
// nothing is kept.
func Noted(kept, last, seen map[string]stores.Mark, members []stores.StoreMember) map[string]stores.Mark {
	next := map[string]stores.Mark{}
	for id := range seen {
		if m := kept[id].Or(last[id]); m != (stores.Mark{}) {
			next[id] = m
		}
	}
	for _, m := range members {
		if old, ok := kept[m.ID]; ok {
			next[m.ID] = next[m.ID].Or(old)
		}
	}
	return next
}

// Named are members with the names of their servers: one that never started has only an address, by which its record is known. One
// without a record is named by its address, so that it can be removed.
func Named(members []stores.StoreMember, known map[string]records.Server) []stores.StoreMember {
	out := slices.Clone(members)
	for i, m := range out {
		if m.Name != "" {
			continue
		}
		out[i].Name = m.Peer
		for _, r := range known {
			if m.Peer == r.Peer {
				out[i].Name = r.Name
			}
		}
	}
	return out
}

// majority of so many voters.
func majority(voters int) int { return voters/2 + 1 }

// Next is the voter that takes over the lead from the member id; "": there is none.
func Next(members []stores.StoreMember, alive map[string]bool, id string) string {
	at := slices.IndexFunc(members, func(m stores.StoreMember) bool { return !m.Learner && m.ID != id && alive[m.ID] })
	if at < 0 {
		return ""
	}
	return members[at].ID
}
