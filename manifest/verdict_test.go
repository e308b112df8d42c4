package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/quota"
)

// verdict is what becomes of a field that is written in a manifest.
type verdict string

const (
	honoured verdict = "yes"
	same     verdict = "as here anyway"  // accepted without a word: Stead does that anyway
	nothing  verdict = "changes nothing" // accepted with a warning that says why
	refused  verdict = "refused"
)

// outcome is the verdict of one value of a field.
type outcome struct {
	value string // as in tries
	verdict
	at       string // the field that decides: it, or one that it is in
	sentence string // of the warning or problem
}

// judge writes a value into a manifest, parses it and says what becomes of it. It finds fault when users
// would see neither the effect, nor a sentence at the field's place.
func (b builder) judge(f kubeField, value string) outcome {
	text := b.with(f, value)
	o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{Host: spec.AnyHostAccess(), LoadBalancers: true})
	out := outcome{value: value, verdict: honoured, at: f.path}
	for _, p := range problems {
		at := plainPath(p.Path)
		switch {
		case p.What == "unknown field":
			b.fail("%s %s: unknown field", f.kind, f.path)
		case !within(f.path, at) && at != "kind" && !namesOther(value, at):
			b.fail("%s %s: %s has another problem: %s", f.kind, f.path, value, p)
		case p.Fix == "":
			b.fail("%s %s: %s is refused without what to write: %s", f.kind, f.path, value, p)
		}
		b.inPlace(f, text, p)
		out.verdict, out.at, out.sentence = refused, at, sentenceOf(p, notYet)
	}
	if len(problems) > 0 {
		return out
	}
	for _, p := range warnings {
		at := plainPath(p.Path)
		if p.Path == "" || !within(f.path, at) || !within(at, f.path) && b.warnsAnyway(f.kind, p) {
			continue
		}
		if p.What == noEffect && p.Fix == "" {
			b.fail("%s %s: %s changes nothing, without why: %s", f.kind, f.path, value, p)
		}
		b.inPlace(f, text, p)
		out.verdict, out.at, out.sentence = nothing, at, sentenceOf(p, noEffect)
	}
	if out.verdict == nothing {
		return out
	}
	return b.kept(f, text, &o, out)
}

// namesOther reports whether a value of tries has the field at beside it.
func namesOther(value, at string) bool {
	_, others, _ := strings.Cut(value, " with ")
	m, _ := readYAML(others).(map[string]any)
	_, name := split(at)
	return m[name] != nil
}

// sentenceOf is what p says, but for the words that say only that it says something.
func sentenceOf(p Problem, usual string) string {
	if p.What == usual {
		return p.Fix
	}
	if p.Fix == "" {
		return p.What
	}
	return p.What + "; " + p.Fix
}

// warnsAnyway reports whether the manifest has this warning without the field.
func (b builder) warnsAnyway(kind string, p Problem) bool {
	_, _, warnings := Parse([]Source{{Name: "f", Content: []byte(plainObjects[kind])}}, Options{})
	for _, w := range warnings {
		if w.Path == p.Path && w.What == p.What {
			return true
		}
	}
	return false
}

// inPlace finds fault when p is not at the line and column of its field, or of the value.
func (b builder) inPlace(f kubeField, text string, p Problem) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		panic(err)
	}
	at, key := doc.Content[0], doc.Content[0]
	for name := range strings.SplitSeq(strings.ReplaceAll(p.Path, "[0]", ".0"), ".") {
		name, _, _ = strings.Cut(name, "[") // the key of a map is below its field
		if at.Kind == yaml.SequenceNode {
			at, key = at.Content[0], at.Content[0]
			continue
		}
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == name {
				key, at = at.Content[i], at.Content[i+1]
				break
			}
		}
	}
	if p.Line != key.Line && (p.Line != at.Line || p.Column != at.Column) && !strings.HasSuffix(p.Path, "]") || p.Line == 0 {
		b.fail("%s %s: the problem is at %d:%d, the field at %d:%d: %s", f.kind, f.path, p.Line, p.Column, key.Line, key.Column, p)
	}
}

// kept judges a value that was accepted without a word: it is in the stored object, or it says what
// Stead does anyway, as its tag declares.
func (b builder) kept(f kubeField, text string, o *Objects, out outcome) outcome {
	got := showAt(storedForm(f.kind, o), f.path)
	want := showAt(readYAML(text), f.path)
	if contains(got, want) {
		return out
	}
	at := b.saysSame(f, text)
	if at == "" {
		b.fail("%s %s: %v is accepted without a word, and the stored object has %v", f.kind, f.path, want, got)
	}
	out.verdict, out.at = same, at
	return out
}

// saysSame is the field on the way to f that declares the value as what Stead does anyway; "": none does.
func (b builder) saysSame(f kubeField, text string) string {
	typ := map[string]reflect.Type{"StatefulSet": reflect.TypeFor[spec.StatefulSet](), "Service": reflect.TypeFor[spec.Service](),
		"NetworkPolicy": reflect.TypeFor[netpol.NetworkPolicy](), "Endpoints": reflect.TypeFor[records.Endpoints](), "EndpointSlice": reflect.TypeFor[records.EndpointSlice](),
		"PodDisruptionBudget": reflect.TypeFor[spec.PodDisruptionBudget](), "PersistentVolumeClaim": reflect.TypeFor[spec.PersistentVolumeClaim](), "ResourceQuota": reflect.TypeFor[quota.ResourceQuota]()}[f.kind]
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || typ == nil {
		return ""
	}
	at, path := doc.Content[0], ""
	for part := range strings.SplitSeq(f.path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		path = join(path, part)
		at = child(at, name)
		i := fieldNamed(typ, name)
		if at == nil || i == nil {
			return ""
		}
		if i.saysSame(at) {
			return path
		}
		typ = indirect(i.typ)
		if list && typ.Kind() == reflect.Slice {
			at, typ = at.Content[0], indirect(typ.Elem())
		}
	}
	return ""
}

func fieldNamed(typ reflect.Type, name string) *field {
	if !describable(typ) {
		return nil
	}
	for _, f := range fieldsOf(typ) {
		if f.name == name {
			return &f
		}
	}
	return nil
}

// storedForm is what 'get -o yaml' prints of the object; of a Secret, what was decoded.
func storedForm(kind string, o *Objects) any {
	var object any
	switch kind {
	case "StatefulSet":
		s := o.Sets[0]
		object = OfSet(&records.Set{Ref: spec.SetRef{Namespace: s.Metadata.Namespace, Name: spec.SetName(s.Metadata.Name)},
			Labels: s.Metadata.Labels, Annotations: s.Metadata.Annotations, Spec: s.Spec})
	case "Service":
		s := o.Services[0]
		object = OfService(&records.ServiceRecord{Meta: records.MetaOf(s.Metadata), Spec: s.Spec})
	case "PodDisruptionBudget":
		s := o.Budgets[0]
		object = OfBudget(&records.BudgetRecord{Meta: records.MetaOf(s.Metadata), Spec: s.Spec})
	case "NetworkPolicy":
		s := o.Policies[0]
		object = OfNetworkPolicy(&records.NetworkPolicyRecord{Meta: records.MetaOf(s.Metadata), Spec: s.Spec})
	case "ResourceQuota":
		s := o.Quotas[0]
		object = OfQuota(&records.QuotaRecord{Meta: records.MetaOf(s.Metadata), Spec: s.Spec})
	case "PersistentVolumeClaim":
		c := o.Claims[0]
		object = OfClaim(&records.ClaimRecord{Meta: records.MetaOf(c.Metadata), Spec: c.Spec})
	case "Endpoints":
		e := o.Endpoints[0]
		object = OfEndpoints(&records.EndpointsRecord{Meta: records.MetaOf(e.Metadata), Subsets: e.Subsets})
	case "EndpointSlice":
		e := o.Slices[0]
		object = OfSlice(&records.SliceRecord{Meta: records.MetaOf(e.Metadata), AddressType: e.AddressType, Endpoints: e.Endpoints, Ports: e.Ports})
	case "ConfigMap":
		object = OfConfigMap(configRecord(&o.ConfigMaps[0]))
	default: // what is stored of it is sealed
		s := o.Secrets[0]
		s.Metadata = records.MetaOf(s.Metadata).Manifest()
		object = s
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return readYAML(string(text))
}

func configRecord(c *spec.ConfigMap) *records.ConfigRecord {
	return &records.ConfigRecord{Meta: records.MetaOf(c.Metadata), Files: c.Files(), Immutable: c.Immutable}
}

// showAt is the value at a path, in the first item of each list; nil: there is none.
func showAt(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(name, "[]")
		m, _ := v.(map[string]any)
		v = m[name]
		if items, _ := v.([]any); list && len(items) > 0 {
			v = items[0]
		}
	}
	return v
}

// contains reports whether got is want; of a mapping, whether it has all its entries.
func contains(got, want any) bool {
	if m, ok := want.(map[string]any); ok {
		have, _ := got.(map[string]any)
		for key, value := range m {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}

func (b builder) fail(format string, args ...any) {
	*b.wrong = append(*b.wrong, fmt.Sprintf(format, args...))
}

// verdicts judges every value of tries of every field without fields of its own, by kind and path,
// and tells what is wrong with them.
var verdicts = sync.OnceValues(func() (map[string][]outcome, []string) {
	fields := kubeFields()
	b, all := newBuilder(fields), map[string][]outcome{}
	for _, f := range fields {
		if !f.leaf {
			continue
		}
		for _, value := range triesOf(f) {
			all[f.kind+" "+f.path] = append(all[f.kind+" "+f.path], b.judge(f, value))
		}
	}
	return all, *b.wrong
})

// TestEveryFieldOfKubernetesIsHonouredOrSaysWhatItIs: none of 1.33 is unknown, none is dropped
// without a word, and each sentence is at the field's line and says what to write, or why it changes nothing.
func TestEveryFieldOfKubernetesIsHonouredOrSaysWhatItIs(t *testing.T) {
	all, wrong := verdicts()
	for _, text := range wrong {
		t.Error(text)
	}
	if len(all) < 1000 {
		t.Errorf("only %d fields were judged: are they still read?", len(all))
	}
}
