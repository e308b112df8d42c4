package files

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// absentWord stands in a table of set.env for what there is not, so that each line has all its words.
const absentWord = "-"

// envOf appends the content of set.env: what set.json says, as variables of a plain shell, which reads
// it with "." at once and so never sees two versions. Every value is quoted: nothing in it is run. peers are all of p.
func envOf(out []byte, p *records.Snapshot, peers []*peerText) []byte {
	set := func(name, value string) { out = fmt.Appendf(out, "STEAD_%s='%s'\n", name, quotedPart(value)) }
	ordinals := make([]string, 0, len(p.InitialOrdinals))
	for _, o := range p.InitialOrdinals {
		ordinals = append(ordinals, strconv.Itoa(o))
	}
	bootstrapped, used := "", ""
	if p.Bootstrapped {
		bootstrapped = "1"
	}
	var notes []string
	for _, t := range peers {
		if t.peer.Note != "" {
			notes = append(notes, fmt.Sprintf("%d %s", t.peer.Ordinal, t.peer.Note))
		}
		if t.peer.Volumes == records.VolumesUsed {
			used = "1"
		}
	}
	set("SEQUENCE", fmt.Sprintf("%d %d", p.Sequence.Epoch, p.Sequence.Rev))
	set("REPLICAS", strconv.Itoa(p.Replicas))
	set("INITIAL_ORDINALS", strings.Join(ordinals, " "))
	set("BOOTSTRAPPED", bootstrapped)
	set("USED", used)
	set("LEADER", leaderName(p))
	out = append(out, "STEAD_PEERS='"...)
	for i, t := range peers {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, t.line...)
	}
	out = append(out, "'\n"...)
	set("NOTES", strings.Join(notes, "\n"))
	return out
}

// SetEnv is the content of set.env. Tests of scripts that read the file use it; an agent makes it by difference (setText).
func SetEnv(p *records.Snapshot) ([]byte, error) {
	var t setText
	_, env, err := t.both(p, 0)
	return env, err
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

// quotedPart is s as it stands between the single quotes of a plain shell.
func quotedPart(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }
