package manifest

import (
	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec"
)

// Has reports whether Parse read this object, and did not leave it out.
func (o *Objects) Has(kind string, namespace spec.Namespace, name string) bool {
	_, known := o.positions[objectKey{kind, namespace, name}]
	return known
}

// labelsOf are the labels of an object, as they are written, also those that a mapping merges by <<.
func labelsOf(root *yaml.Node) map[string]string {
	labels := map[string]string{}
	addLabels(labels, child(child(root, "metadata"), "labels"), 0)
	return labels
}

// mergedDepth bounds mappings that merge others.
const mergedDepth = 4

func addLabels(labels map[string]string, list *yaml.Node, depth int) {
	if list == nil || deref(list).Kind != yaml.MappingNode || depth > mergedDepth {
		return
	}
	pairs := deref(list).Content
	for i := 0; i+1 < len(pairs); i += 2 { // those that are merged first: its own replace them
		if pairs[i].ShortTag() == "!!merge" {
			addLabels(labels, pairs[i+1], depth+1)
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if key := scalarText(pairs[i]); key != "" && pairs[i].ShortTag() != "!!merge" {
			labels[key] = scalarText(pairs[i+1])
		}
	}
}
