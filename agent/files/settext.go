package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
)

// setText makes the texts of a set's files. It keeps that of each peer and each change, so that a set of which one peer changed costs
// the encoding of one. The zero value has nothing yet. What its methods return is theirs again with the next call.
type setText struct {
	peers              []*peerText   // by ordinal
	changes            []*changeText // oldest first
	set, table, events []byte
}

type peerText struct {
	peer records.Peer
	doc  []byte // in set.json
	line string // in set.env, as within quotes
}

type changeText struct {
	change records.Change
	line   []byte
}

// takePeers has the texts of these peers, sorted by ordinal.
func (t *setText) takePeers(peers []records.Peer) error {
	next, at := make([]*peerText, 0, len(peers)), 0
	for i := range peers {
		p := &peers[i]
		for at < len(t.peers) && t.peers[at].peer.Ordinal < p.Ordinal {
			at++
		}
		if at < len(t.peers) && t.peers[at].peer == *p {
			next = append(next, t.peers[at])
			continue
		}
		doc, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode %s: %w", SetFile, err)
		}
		next = append(next, &peerText{*p, doc, quotedPart(peerLine(p))})
	}
	t.peers = next
	return nil
}

// both are set.json, one line, and set.env of the same snapshot.
func (t *setText) both(p *records.Snapshot, confirmed Uptime) (set, env []byte, err error) {
	if err := t.takePeers(sortedPeers(p)); err != nil {
		return nil, nil, err
	}
	head, err := json.Marshal(setDoc{
		Set: p.Ref.Name, Namespace: p.Ref.Namespace, Replicas: p.Replicas, Initial: p.InitialReplicas,
		Ordinals: append([]int{}, p.InitialOrdinals...), Generation: p.Generation, Bootstrapped: p.Bootstrapped,
		Sequence: p.Sequence, Event: p.Told, ConfirmedUntil: confirmed, Leader: leaderName(p), Peers: []records.Peer{},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", SetFile, err)
	}
	out := append(t.set[:0], bytes.TrimSuffix(head, []byte("]}"))...) // the peers are its last field
	for i, peer := range t.peers {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, peer.doc...)
	}
	t.set = append(out, "]}\n"...)
	t.table = envOf(t.table[:0], p, t.peers)
	return t.set, t.table, nil
}

// ofEvents is the content of the file events: one change a line, oldest first.
func (t *setText) ofEvents(changes []records.Change) ([]byte, error) {
	next, at := make([]*changeText, 0, len(changes)), 0
	for i := range changes {
		c := &changes[i]
		for at < len(t.changes) && t.changes[at].change.ID().Compare(c.ID()) < 0 {
			at++
		}
		if at < len(t.changes) && t.changes[at].change == *c {
			next = append(next, t.changes[at])
			continue
		}
		line, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", EventsFile, err)
		}
		next = append(next, &changeText{*c, append(line, '\n')})
	}
	t.changes = next
	out := t.events[:0]
	for _, c := range next {
		out = append(out, c.line...)
	}
	t.events = out
	return out, nil
}

// sortedPeers are all peers, those expected included, by ordinal. They are not to be changed.
func sortedPeers(p *records.Snapshot) []records.Peer {
	byOrdinal := func(a, b records.Peer) int { return a.Ordinal - b.Ordinal }
	if len(p.Expected) == 0 && slices.IsSortedFunc(p.Peers, byOrdinal) {
		return p.Peers
	}
	peers := slices.Concat(p.Peers, p.Expected)
	slices.SortFunc(peers, byOrdinal)
	return peers
}
