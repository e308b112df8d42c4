package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// scaled is one size of BenchmarkScale.
type scaled struct {
	kind           string // of the nodes
	hosts, members int
}

// scaleSizes are what of BenchmarkScale is run; STEAD_SCALE=HOSTSxMEMBERS is one size of it, with
// STEAD_NODES=agent on real agents.
func scaleSizes(b *testing.B) []scaled {
	text := os.Getenv("STEAD_SCALE")
	if text == "" {
		return []scaled{{"light", 1, 10}, {"light", 1, 100}, {"light", 1, 1000}, {"light", 50, 1000}, {"agent", 1, 100}, {"agent", 1, 1000}}
	}
	s := scaled{kind: nodesKind(b, "light")}
	if n, err := fmt.Sscanf(text, "%dx%d", &s.hosts, &s.members); err != nil || n != 2 || s.hosts < 1 || s.members < 1 {
		b.Fatalf("STEAD_SCALE=%q; write HOSTSxMEMBERS, such as 50x1000", text)
	}
	return []scaled{s}
}

// nodesKind is what STEAD_NODES says, or otherwise.
func nodesKind(b *testing.B, otherwise string) string {
	switch kind := os.Getenv("STEAD_NODES"); kind {
	case "":
		return otherwise
	case "light", "agent":
		return kind
	default:
		b.Fatalf("STEAD_NODES=%q; write light or agent", kind)
		return ""
	}
}

// chosenPhases are those of all that STEAD_PHASES names, such as parallel,parallel-to-zero; empty: all. Each other
// than the first of a set needs the one before it.
func chosenPhases(b *testing.B, all []phase) []phase {
	text := os.Getenv("STEAD_PHASES")
	if text == "" {
		return all
	}
	var list []phase
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(all, func(p phase) bool { return p.name == name })
		if i < 0 {
			b.Fatalf("STEAD_PHASES=%q; there is no phase %q", text, name)
		}
		list = append(list, all[i])
	}
	return list
}

// BenchmarkScale is what one set costs the server, its store included, where hosts need no time
// and are in another process: created in order, updated, scaled to zero; created in
// parallel, scaled to zero.
func BenchmarkScale(b *testing.B) {
	for _, size := range scaleSizes(b) {
		b.Run(fmt.Sprintf("%s/%dx%d", size.kind, size.hosts, size.members), func(b *testing.B) {
			h := newApart(b, size.kind, size.hosts)
			for _, p := range chosenPhases(b, h.phases(size.members)) {
				s := h.measure(p)
				b.Run(p.name, s.report)
			}
		})
	}
}
