package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// refusals are the words of the nodes that cannot take a life, each word once.
type refusals struct {
	words   []string
	nodes   map[string][]spec.NodeName
	reasons []causes.BlockedReason
}

func (r *refusals) add(n spec.NodeName, reason causes.BlockedReason, words string) {
	if r.nodes == nil {
		r.nodes = map[string][]spec.NodeName{}
	}
	if r.nodes[words] == nil {
		r.words = append(r.words, words)
	}
	r.nodes[words] = append(r.nodes[words], n)
	r.reasons = append(r.reasons, reason)
}

// reason is that of a class that is missing anywhere, for it is misspelt most likely; that
// there is no room, no host port or no guard, or a volume in the way, when that is all that is
// missing somewhere.
func (r *refusals) reason() causes.BlockedReason {
	for _, reason := range []causes.BlockedReason{causes.BlockedNoClass, causes.BlockedNoRoom, causes.BlockedHostPort, causes.BlockedNoGuard, causes.BlockedReclaiming} {
		if slices.Contains(r.reasons, reason) {
			return reason
		}
	}
	return causes.BlockedNoNode
}

func (r *refusals) text() string {
	parts := make([]string, len(r.words))
	for i, words := range r.words {
		nodes := r.nodes[words]
		parts[i] = fmt.Sprintf("node %s %s", nodes[0], words)
		if others := nodes[1:]; len(others) > MostNamed {
			parts[i] += fmt.Sprintf(" (and %d other nodes)", len(others))
		} else if len(others) > 0 {
			parts[i] += fmt.Sprintf(" (also %s)", Names(others))
		}
	}
	return strings.Join(parts, "; ")
}

// MostNamed bounds the nodes that a sentence names.
const MostNamed = 3

// Names are the names of nodes as a sentence has them.
func Names(nodes []spec.NodeName) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}
