package files

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// absentWord stands in a table of set.env for what there is not, so that each line has all its words.
const absentWord = "-"

// SetEnv is the content of set.env: what set.json says, as variables of a plain shell, which reads
// it with "." at once and so never sees two versions. Every value is quoted: nothing in it is run.
func SetEnv(p *records.Snapshot) []byte {
	var out []byte
	set := func(name, value string) { out = fmt.Appendf(out, "STEAD_%s=%s\n", name, shellQuoted(value)) }
	ordinals := make([]string, 0, len(p.InitialOrdinals))
	for _, o := range p.InitialOrdinals {
		ordinals = append(ordinals, fmt.Sprint(o))
	}
	bootstrapped, used := "", ""
	if p.Bootstrapped {
		bootstrapped = "1"
	}
	lines := make([]string, 0, len(p.Peers)+len(p.Expected))
	var notes []string
	for _, peer := range sortedPeers(p) {
		if peer.Note != "" {
			notes = append(notes, fmt.Sprintf("%d %s", peer.Ordinal, peer.Note))
		}
		lines = append(lines, peerLine(&peer))
		if peer.Volumes == records.VolumesUsed {
			used = "1"
		}
	}
	set("SEQUENCE", fmt.Sprintf("%d %d", p.Sequence.Epoch, p.Sequence.Rev))
	set("REPLICAS", fmt.Sprint(p.Replicas))
	set("INITIAL_ORDINALS", strings.Join(ordinals, " "))
	set("BOOTSTRAPPED", bootstrapped)
	set("USED", used)
	set("LEADER", leaderName(p))
	set("PEERS", strings.Join(lines, "\n"))
	set("NOTES", strings.Join(notes, "\n"))
	return out
}

// peerLine is "ordinal name fqdn address ready volumes".
func peerLine(p *records.Peer) string {
	address, ready := absentWord, "no"
	if p.Address.IsValid() {
		address = p.Address.String()
	}
	if p.Ready {
		ready = "ready"
	}
	return fmt.Sprintf("%d %s %s %s %s %s", p.Ordinal, p.Name, cmp.Or(p.FQDN, absentWord), address, ready, cmp.Or(p.Volumes, absentWord))
}

// leaderName is the member that leads; "": none does.
func leaderName(p *records.Snapshot) string {
	ordinal, leads := records.Leader(p.Peers)
	if !leads {
		return ""
	}
	return spec.Identity{Set: p.Ref.Name, Ordinal: ordinal}.MemberName()
}

// sortedPeers are all peers, those expected included, by ordinal.
func sortedPeers(p *records.Snapshot) []records.Peer {
	peers := slices.Concat(p.Peers, p.Expected)
	slices.SortFunc(peers, func(a, b records.Peer) int { return a.Ordinal - b.Ordinal })
	return peers
}

// shellQuoted is s as one word of a plain shell.
func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
