package records

import (
	"cmp"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// MaxPreparations is how many a node deals with at a time. Others follow when updates are complete.
const MaxPreparations = 64

// Preparation is what a node is to have before an update of a set stops the first member: images that the set's
// members have not run yet. It belongs to no life, and nothing of it is a start.
type Preparation struct {
	Ref      spec.SetRef       `json:"ref"`
	Revision spec.RevisionHash `json:"revision"` // where members go
	// Images are in the order of the template's containers, each once.
	Images []NewImage `json:"images"`
	// PullSecrets are the imagePullSecrets of the revision's template.
	PullSecrets []spec.PullSecret `json:"pullSecrets,omitempty"`
}

// NewImage is an image as a template names it, with the policy by which it is pulled.
type NewImage struct {
	Image  string `json:"image"`
	Policy string `json:"policy"`
}

// Prepared is what a node says of a Preparation.
type Prepared struct {
	Ref      spec.SetRef       `json:"ref"`
	Revision spec.RevisionHash `json:"revision"`
	// Done: all of its images are there.
	Done bool `json:"done,omitempty"`
	// Cause and Message say of one that is not done why not. Of what is under way nothing is said.
	Cause   causes.Cause `json:"cause,omitempty"`
	Message string       `json:"message,omitempty"`
}

// Compare orders them by what they are about.
func (p Prepared) Compare(o Prepared) int {
	return cmp.Or(p.Ref.Compare(o.Ref), cmp.Compare(p.Revision, o.Revision))
}

// PreparedFor is what the node says of a revision of a set; nil: nothing. f may be nil.
func (f *NodeFacts) PreparedFor(ref spec.SetRef, revision spec.RevisionHash) *Prepared {
	if f == nil {
		return nil
	}
	for i := range f.Prepared {
		if p := &f.Prepared[i]; p.Ref == ref && p.Revision == revision {
			return p
		}
	}
	return nil
}
