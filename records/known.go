package records

// Add is k with what now says of the same store: the highest of each. A higher epoch is a
// restore that was declared: what was known of the store before counts no more, and a lower
// one adds nothing. Nodes stay as they are in k.
func (k Known) Add(now Known) Known {
	switch {
	case now.At.Epoch < k.At.Epoch:
		return k
	case now.At.Epoch > k.At.Epoch:
		now.Nodes = k.Nodes
		return now
	}
	if now.Cluster != "" {
		k.Cluster = now.Cluster
	}
	if now.Origin != "" {
		k.Origin = now.Origin
	}
	k.Term, k.At.Rev = max(k.Term, now.Term), max(k.At.Rev, now.At.Rev)
	if now.Link.Number > k.Link.Number {
		k.Link = now.Link
	}
	return k
}
