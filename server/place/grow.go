package place

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Grow has a life that stays on its node take so much more there: the next Choose counts it. If the node has too little left, it says so,
// and nothing is taken. A node that does not say how much it has gives all.
func (p *Placer) Grow(node spec.NodeName, cpuMillis, memoryBytes int64) *Refusal {
	n := proof.FindNode(p.nodes, node)
	if n == nil || n.Facts == nil {
		return nil
	}
	used := p.used[node]
	var lacking []string
	if left := n.Facts.CPUMillis - n.CPUMillis - used.cpuMillis; n.Facts.CPUMillis > 0 && cpuMillis > max(left, 0) {
		lacking = append(lacking, fmt.Sprintf("%s of %s cpu left, %s more requested", cpuText(left), cpuText(n.Facts.CPUMillis), cpuText(cpuMillis)))
	}
	if left := n.Facts.MemoryBytes - n.MemoryBytes - used.memoryBytes; n.Facts.MemoryBytes > 0 && memoryBytes > max(left, 0) {
		lacking = append(lacking, fmt.Sprintf("%s of %s memory left, %s more requested", bytesText(left), bytesText(n.Facts.MemoryBytes), bytesText(memoryBytes)))
	}
	if len(lacking) > 0 {
		return &Refusal{causes.BlockedNoRoom, fmt.Sprintf("node %s has %s", node, strings.Join(lacking, ", and "))}
	}
	if p.used == nil {
		p.used, p.begun = map[spec.NodeName]room{}, map[spec.NodeName][]proof.Resident{}
	}
	used.cpuMillis, used.memoryBytes = used.cpuMillis+cpuMillis, used.memoryBytes+memoryBytes
	p.used[node] = used
	return nil
}
