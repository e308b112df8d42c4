package plan

import "github.com/stead-project/stead/spec"

// withoutAsked: what was asked about a claim is done.
func (m memberFacts) withoutAsked(claim spec.ClaimName) *memberFacts {
	m.Asked = without(m.Asked, claim)
	return &m
}
