package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// checks gathers what is wrong with a decoded object whose defaults are filled in.
type checks struct {
	problems, warnings problemList
	// oneOf are problems of a field of which exactly one part must be given. They
	// are dropped when a part was refused.
	oneOf problemList
	// host is what the operator allows.
	host spec.HostAccess
	// domain is that of the cluster; "": not known.
	domain string
	// balanced: load balancers get addresses.
	balanced bool
}

func (c *checks) fail(path, what, fix string) { c.problems.add(path, what, fix) }
func (c *checks) warn(path, what, fix string) { c.warnings.add(path, what, fix) }

// required reports whether value is there.
func (c *checks) required(path, value string) bool {
	if value == "" {
		c.fail(path, "is missing", "")
	}
	return value != ""
}

// exactlyOne requires one of the parts, which are named by the keys.
func (c *checks) exactlyOne(path string, parts map[string]bool) {
	var given []string
	for _, name := range sortedKeys(parts) {
		if parts[name] {
			given = append(given, name)
		}
	}
	fix := "write " + either(sortedKeys(parts))
	switch len(given) {
	case 0:
		c.oneOf.add(path, "is empty", fix)
	case 1:
	default:
		c.fail(path, "has "+strings.Join(given, " and "), fix)
	}
}

// choice requires value to be one of supported; planned ones are not supported yet.
func (c *checks) choice(path, value string, supported []string, planned ...string) {
	switch {
	case slices.Contains(supported, value):
	case slices.Contains(planned, value):
		c.fail(path, scalar.Quote(value)+" is not supported yet", "write "+either(supported))
	default:
		c.fail(path, scalar.Quote(value)+" is unknown", "write "+either(supported))
	}
}

func (c *checks) between(path string, n, least, most int64) {
	if n < least || n > most {
		fix := fmt.Sprintf("write %d to %d", least, most)
		if least == most {
			fix = fmt.Sprintf("write %d", least)
		}
		c.fail(path, fmt.Sprintf("%d is out of range", n), fix)
	}
}

// valid requires that value is one, which is called kind in the message.
func (c *checks) valid(path, value string, is func(string) bool, kind, fix string) {
	if !is(value) {
		c.fail(path, scalar.Quote(value)+" is not a valid "+kind, fix)
	}
}

// given is valid for a value that must be there.
func (c *checks) given(path, value string, is func(string) bool, kind, fix string) {
	if c.required(path, value) {
		c.valid(path, value, is, kind, fix)
	}
}

// label requires a DNS-1123 label.
func (c *checks) label(path, name string) {
	c.given(path, name, scalar.ValidLabel, "name", "write at most 63 of a-z, 0-9 and -, with a letter or digit at both ends")
}

// subdomain requires a DNS-1123 subdomain.
func (c *checks) subdomain(path, name string) {
	c.given(path, name, scalar.ValidSubdomain, "name", "write at most 253 of a-z, 0-9, - and ., with a letter or digit at both ends")
}

// once reports a value that was seen before, and adds it to seen.
func (c *checks) once(path, value string, seen map[string]bool) {
	if value != "" && seen[value] {
		c.fail(path, scalar.Quote(value)+" is given twice", "")
	}
	seen[value] = true
}

const maxAnnotations = 256 << 10 // bytes of all annotations of an object, as in Kubernetes

// metadata checks everything but the name, whose rule differs.
func (c *checks) metadata(path string, m *spec.ObjectMeta) {
	if m.Namespace != "" {
		c.valid(path+".namespace", string(m.Namespace), scalar.ValidLabel, "namespace", "write at most 63 of a-z, 0-9 and -")
	}
	c.labels(path+".labels", m.Labels)
	size := 0
	for _, key := range sortedKeys(m.Annotations) {
		size += len(key) + len(m.Annotations[key])
		c.valid(path+".annotations["+showKey(key)+"]", key, validAnnotationKey, "annotation key", prefixed)
	}
	if size > maxAnnotations {
		c.fail(path+".annotations", fmt.Sprintf("%d bytes of annotations, the maximum is %d", size, maxAnnotations), "move what is large into a ConfigMap")
	}
}

// validAnnotationKey: a label's key that may have capitals in its prefix, as in Kubernetes.
func validAnnotationKey(key string) bool { return scalar.ValidLabelKey(strings.ToLower(key)) }

func (c *checks) labels(path string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		at := path + "[" + showKey(key) + "]"
		if !scalar.ValidLabelKey(key) {
			c.labelKey(at, key)
			continue
		}
		c.valid(at, labels[key], scalar.ValidLabelValue, "label value",
			"write at most 63 letters, digits, -, _ and ., with a letter or digit at both ends")
	}
}

// prefixed tells how a key is written.
const prefixed = "write name or prefix/name"

func (c *checks) labelKey(path, key string) {
	c.valid(path, key, scalar.ValidLabelKey, "label key", prefixed)
}

// selector checks a selector that is given.
func (c *checks) selector(path string, s *spec.LabelSelector) {
	c.labels(path+".matchLabels", s.MatchLabels)
	for i, r := range s.MatchExpressions {
		c.requirement(index(path+".matchExpressions", i), r)
	}
}

func (c *checks) requirement(path string, r spec.SelectorRequirement) {
	c.labelKey(path+".key", r.Key)
	switch r.Operator {
	case spec.In, spec.NotIn:
		if len(r.Values) == 0 {
			c.fail(path+".values", "is missing", r.Operator+" needs values")
		}
	case spec.Exists, spec.DoesNotExist:
		if len(r.Values) > 0 {
			c.fail(path+".values", "has no effect with "+r.Operator, "remove it")
		}
	default:
		c.fail(path+".operator", scalar.Quote(r.Operator)+" is unknown", "write In, NotIn, Exists or DoesNotExist")
	}
	for i, v := range r.Values {
		c.valid(index(path+".values", i), v, scalar.ValidLabelValue, "label value", "")
	}
}

// size requires a whole number of bytes, at least least.
func (c *checks) size(path string, q scalar.Quantity, least int64) {
	switch {
	case q.Milli%1000 != 0:
		c.fail(path, q.String()+" is not a whole number of bytes", fmt.Sprintf("write %dMi", q.Milli))
	case q.Value() < least:
		c.fail(path, q.String()+" is too small", "write at least "+scalar.Quantity{Milli: least * 1000}.String())
	}
}

// either is "a, b or c"; an empty word is shown as "".
func either(words []string) string {
	shown := make([]string, len(words))
	for i, w := range words {
		shown[i] = w
		if w == "" {
			shown[i] = `""`
		}
	}
	last := len(shown) - 1
	if last == 0 {
		return shown[0]
	}
	return strings.Join(shown[:last], ", ") + " or " + shown[last]
}

// index is path[i].
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// sortedKeys are the keys of m in ascending order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
