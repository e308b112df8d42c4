package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kubeTable is what docs/MANIFEST.md says of the fields that Kubernetes has.
type kubeTable struct {
	leaf   map[string]kubeField // by kind and path without brackets
	tried  map[string][]outcome // of a field without fields of its own, or of all below one
	parent map[string]bool
	seen   map[string]int // TYPE.FIELD or path: the number in observations, from 0
}

func newKubeTable(t *testing.T) *kubeTable {
	t.Helper()
	k := &kubeTable{leaf: map[string]kubeField{}, tried: map[string][]outcome{}, parent: map[string]bool{}}
	_, k.seen = observations(t)
	all, _ := verdicts()
	for _, f := range kubeFields() {
		if !f.leaf {
			continue
		}
		key := rowKey(f.kind, f.path)
		k.leaf[key] = f
		k.tried[key] = all[f.kind+" "+f.path]
		for above, name := split(f.path); above != ""; {
			at := rowKey(f.kind, above)
			k.parent[at] = true
			for _, o := range all[f.kind+" "+f.path] {
				o.value = name + ": " + o.value
				k.tried[at] = append(k.tried[at], o)
			}
			var last string
			above, last = split(above)
			name = last + "." + name
		}
	}
	return k
}

func rowKey(kind, path string) string { return kind + " " + strings.ReplaceAll(path, "[]", "") }

// has reports whether Kubernetes has the field.
func (k *kubeTable) has(kind, path string) bool { return k.tried[rowKey(kind, path)] != nil }

// outcomes are those of a field; of one with fields of its own, if it decides for all of them. None:
// each of these has a verdict of its own.
func (k *kubeTable) outcomes(kind, path string) []outcome {
	key := rowKey(kind, path)
	list := k.tried[key]
	if k.parent[key] && slices.ContainsFunc(list, func(o outcome) bool { return !within(path, o.at) }) {
		return nil
	}
	return list
}

// support are the words for the verdicts: one for all values, or with the values that were tried.
func (k *kubeTable) support(kind, path string) string {
	list := k.outcomes(kind, path)
	if list == nil {
		return string(honoured)
	}
	var groups []string
	values := map[verdict][]string{}
	for _, o := range list {
		if values[o.verdict] == nil {
			groups = append(groups, string(o.verdict))
		}
		if v := "`" + tableText(o.value) + "`"; !slices.Contains(values[o.verdict], v) {
			values[o.verdict] = append(values[o.verdict], v)
		}
	}
	if len(groups) == 1 {
		return groups[0]
	}
	for i, g := range groups {
		if v := verdict(g); i > 0 || v != honoured {
			groups[i] = g + ": " + strings.Join(values[v], ", ")
		}
	}
	return strings.Join(groups, "; ")
}

// sentences are what users are told, one for each verdict.
func (k *kubeTable) sentences(kind, path string) string {
	var list []string
	told := map[verdict]bool{}
	for _, o := range k.outcomes(kind, path) {
		if o.sentence != "" && !told[o.verdict] && !slices.Contains(list, tableText(o.sentence)) {
			list = append(list, tableText(o.sentence))
		}
		told[o.verdict] = told[o.verdict] || o.sentence != ""
	}
	return strings.Join(list, "; ")
}

// example is the value that is tried first, of a field without fields of its own.
func (k *kubeTable) example(kind, path string) string {
	key := rowKey(kind, path)
	if k.parent[key] || len(k.tried[key]) == 0 {
		return ""
	}
	value, others, _ := strings.Cut(tableText(k.tried[key][0].value), " with ")
	if others != "" {
		return "`" + value + "`, with `" + others + "`"
	}
	return "`" + value + "`"
}

// seenIn is the number of the observation, as the page counts them.
func (k *kubeTable) seenIn(kind, path string) string {
	f, ok := k.leaf[rowKey(kind, path)]
	if !ok || !slices.ContainsFunc(k.tried[rowKey(kind, path)], func(o outcome) bool { return o.verdict == honoured }) {
		return ""
	}
	i, ok := k.seen[f.path]
	if !ok {
		i = k.seen[f.of]
	}
	return fmt.Sprint(i + 1)
}

// count says how many fields without fields of their own, or of how many values of them, have each verdict.
func (k *kubeTable) count(kind string) string {
	n := map[verdict]int{}
	fields := 0
	for key, f := range k.leaf {
		if f.kind == kind {
			n[k.tried[key][0].verdict]++
			fields++
		}
	}
	var parts []string
	for _, v := range []verdict{honoured, same, nothing, refused} {
		if n[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[v], v))
		}
	}
	return fmt.Sprintf("%d fields of Kubernetes 1.33 with a value of their own: %s.", fields, strings.Join(parts, ", "))
}

func tableText(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// newer are fields that Stead names although Kubernetes 1.33 does not have them.
var newer = []string{
	"StatefulSet spec.template.spec.hostnameOverride",
	"StatefulSet spec.template.spec.containers[].env[].valueFrom.fileKeyRef",
	"StatefulSet spec.template.spec.containers[].restartPolicyRules",
	"ConfigMap status", // 'get' shows one
}

// TestNamesThatKubernetesDoesNotHaveAreUnknown: a later version's field, or a slip, is not taken for
// one that is left out.
func TestNamesThatKubernetesDoesNotHaveAreUnknown(t *testing.T) {
	b := newBuilder(kubeFields())
	for _, path := range []string{
		"spec.template.spec.workloadRef", "spec.template.spec.conatiners", "spec.template.spec.containers[].imagepullPolicy",
		"spec.template.spec.volumes[].podCertificate", "spec.replica", "metadata.label",
	} {
		text := b.with(kubeField{kind: "StatefulSet", path: path, of: "X.x"}, "{a: b}")
		_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{})
		if len(problems) == 0 || problems[0].What != "unknown field" || plainPath(problems[0].Path) != path {
			t.Errorf("%s: %v, want an unknown field", path, problems)
		}
	}
}
