package place

import "github.com/stead-project/stead/server/proof"

// possible is what Possible looks at.
type possible struct {
	fixedFor
	home string
}

// Possible reports whether any node may take the life some day as the nodes are now: one that has the labels that it asks for
// and no taint that it does not tolerate, and is large enough. Whether a node is connected, cordoned or in use, and who runs
// there, is no matter. The node to which volumes bind the life is the only one for it; where they bind it to two, there is none.
func (p *Placer) Possible(r *Request) bool {
	home, no := r.home()
	if no != nil {
		return false
	}
	key := possible{fixedFor{r.Template, r.Guarded}, string(home)}
	is, known := p.possible[key]
	if known {
		return is
	}
	s := &search{Placer: p, Request: r}
	s.cpuMillis, s.memoryBytes = r.Template.Requests()
	for i := range p.nodes {
		n := &p.nodes[i]
		if (home == "" || n.Node.Name == home) && s.mislabelled(n) == "" && s.tainted(n) == "" && largeEnough(n, s.cpuMillis, s.memoryBytes) {
			is = true
			break
		}
	}
	if p.possible == nil {
		p.possible = map[possible]bool{}
	}
	p.possible[key] = is
	return is
}

// largeEnough: the node has that much, or does not say how much.
func largeEnough(n *proof.Node, cpuMillis, memoryBytes int64) bool {
	return n.Facts == nil || (n.Facts.CPUMillis == 0 || cpuMillis <= n.Facts.CPUMillis) && (n.Facts.MemoryBytes == 0 || memoryBytes <= n.Facts.MemoryBytes)
}
