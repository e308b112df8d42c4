package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Set, wholeEnv and Events are the contents of set.json, set.env and events, made from all that they say: what setText makes by
// difference is the same.
func Set(p *records.Snapshot, confirmed Uptime) ([]byte, error) {
	peers := append(append([]records.Peer{}, p.Peers...), p.Expected...)
	slices.SortStableFunc(peers, func(a, b records.Peer) int { return a.Ordinal - b.Ordinal })
	b, err := json.Marshal(setDoc{
		Set: p.Ref.Name, Namespace: p.Ref.Namespace, Replicas: p.Replicas, Initial: p.InitialReplicas,
		Ordinals: append([]int{}, p.InitialOrdinals...), Generation: p.Generation, Bootstrapped: p.Bootstrapped,
		Sequence: p.Sequence, Event: p.Told, ConfirmedUntil: confirmed, Leader: leaderName(p), Peers: peers,
	})
	return append(b, '\n'), err
}

func wholeEnv(p *records.Snapshot) []byte {
	peers := slices.Concat(p.Peers, p.Expected)
	slices.SortStableFunc(peers, func(a, b records.Peer) int { return a.Ordinal - b.Ordinal })
	var lines, notes, ordinals []string
	bootstrapped, used := "", ""
	if p.Bootstrapped {
		bootstrapped = "1"
	}
	for _, peer := range peers {
		lines = append(lines, peerLine(&peer))
		if peer.Note != "" {
			notes = append(notes, fmt.Sprintf("%d %s", peer.Ordinal, peer.Note))
		}
		if peer.Volumes == records.VolumesUsed {
			used = "1"
		}
	}
	for _, o := range p.InitialOrdinals {
		ordinals = append(ordinals, fmt.Sprint(o))
	}
	var out []byte
	for _, v := range [][2]string{
		{"SEQUENCE", fmt.Sprintf("%d %d", p.Sequence.Epoch, p.Sequence.Rev)}, {"REPLICAS", fmt.Sprint(p.Replicas)},
		{"INITIAL_ORDINALS", strings.Join(ordinals, " ")}, {"BOOTSTRAPPED", bootstrapped}, {"USED", used}, {"LEADER", leaderName(p)},
		{"PEERS", strings.Join(lines, "\n")}, {"NOTES", strings.Join(notes, "\n")},
	} {
		out = fmt.Appendf(out, "STEAD_%s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	return out
}

func Events(changes []records.Change) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for i := range changes {
		if err := lines.Encode(&changes[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func TestWhatIsMadeByDifferenceIsWhatIsMadeOfAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		var text setText
		p := records.Snapshot{Ref: spec.SetRef{Namespace: "prod", Name: "db"}}
		var changes []records.Change
		var peers, expected []records.Peer
		for step := range 60 {
			peers, expected = slices.Clone(peers), slices.Clone(expected)
			changeSet(dice, &peers, &expected)
			p.Peers, p.Expected = peers, expected
			p.Sequence.Rev, p.Replicas, p.Bootstrapped = int64(step), dice.IntN(30), dice.IntN(2) == 0
			for range dice.IntN(4) {
				changes = append(changes, records.Change{Epoch: 1, Number: int64(step*10 + len(changes)), Member: fmt.Sprint("db-", dice.IntN(9)), Reason: `<"'&>`})
			}
			switch dice.IntN(20) {
			case 0: // the set was deleted, and made anew
				changes = nil
			case 1: // another told of the same numbers
				changes = slices.Clone(changes)
				for i := range changes {
					changes[i].Ordinal++
				}
			}
			changes = changes[max(0, len(changes)-20):]
			until := Uptime(dice.Int64N(1e15))
			wantSet, err := Set(&p, until)
			must(t, err)
			wantEvents, err := Events(changes)
			must(t, err)
			set, env, err := text.both(&p, until)
			must(t, err)
			events, err := text.ofEvents(changes)
			must(t, err)
			equal(t, SetFile, string(set), string(wantSet))
			equal(t, SetEnvFile, string(env), string(wholeEnv(&p)))
			equal(t, EventsFile, string(events), string(wantEvents))
			if t.Failed() {
				return
			}
		}
	}
}

// changeSet adds, removes and changes peers; no ordinal is in both lists.
func changeSet(dice *rand.Rand, peers, expected *[]records.Peer) {
	for range dice.IntN(4) {
		ordinal := dice.IntN(25)
		other := func(p records.Peer) bool { return p.Ordinal == ordinal }
		*peers, *expected = slices.DeleteFunc(*peers, other), slices.DeleteFunc(*expected, other)
		peer := records.Peer{
			Name: fmt.Sprint("db-", ordinal), Ordinal: ordinal, Ready: dice.IntN(2) == 0, Leads: dice.IntN(9) == 0, Term: dice.Uint64N(3),
			Note:    []string{"", "it's", `"<&>` + "\u2028", "$(x)"}[dice.IntN(4)],
			Volumes: []string{"", records.VolumesNew, records.VolumesUsed}[dice.IntN(3)],
		}
		switch dice.IntN(4) {
		case 0: // it is away
		case 1:
			*expected = append(*expected, peer)
		default:
			peer.Address = netip.AddrFrom4([4]byte{10, 88, 0, byte(ordinal)})
			*peers = append(*peers, peer)
		}
	}
	if dice.IntN(3) > 0 {
		slices.SortFunc(*peers, func(a, b records.Peer) int { return a.Ordinal - b.Ordinal })
	}
}
