package rules

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// imagesFirst: nobody that is well is ended for an update while a node that pulls images ahead, and has a member to be
// updated, has not said that it has those that are new.
func (c *planChecker) imagesFirst(o int) {
	images := c.newImages(c.target(o))
	for _, other := range c.Wanted {
		m := c.Slot(other).Member
		if m == nil || !c.obsolete(other) || m.Revision == c.target(o) || c.target(other) != c.target(o) || len(images) == 0 {
			continue
		}
		f := c.factsOf(m.Node)
		if c.session(m.Node) == nil || f == nil || !f.Prepares {
			continue
		}
		if !slices.ContainsFunc(f.Prepared, func(p records.Prepared) bool {
			return p.Done && p.Ref == c.x.Set.Ref && p.Revision == c.target(o)
		}) {
			c.fail("images", "%s is ended for the update to %s, and %s does not have %v", c.Name(o), c.target(o), m.Node, images)
			return
		}
	}
	if len(images) > 0 {
		c.Count("update with images that were pulled ahead")
	}
}

func (r *Reading) factsOf(node spec.NodeName) *records.NodeFacts {
	for _, n := range r.x.Nodes {
		if n.Node.Name == node {
			return n.Facts
		}
	}
	return nil
}

// newImages are those of a revision that the one completed last does not have.
func (c *planChecker) newImages(h spec.RevisionHash) (images []string) {
	now, before := c.templateOf(h), c.templateOf(c.current())
	if now == nil || before == nil {
		return nil
	}
	had := map[string]bool{}
	for x := range before.Spec.All() {
		had[x.Image] = true
	}
	for x := range now.Spec.All() {
		if !had[x.Image] {
			images = append(images, x.Image)
		}
	}
	return images
}

func (c *planChecker) templateOf(h spec.RevisionHash) *spec.Template {
	for _, v := range c.x.Revisions {
		if v.Hash == h {
			return &v.Template
		}
	}
	if h == c.x.TemplateHash {
		t := c.x.Set.Template()
		return &t
	}
	return nil
}
