package files

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// variables keeps the order of first appearance; a later value wins.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) get(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

// list is the variables as NAME=value.
func (v *variables) list() []string {
	out := make([]string, 0, len(v.names))
	for _, name := range v.names {
		out = append(out, name+"="+v.values[name])
	}
	return out
}

// Env is the environment of a container: the variables of services, the STEAD_* constants, then
// envFrom, then env, each able to replace what came before it. Errors: *MissingError.
func Env(l *records.Life, c *spec.Container, n Node, find Lookup) ([]string, error) {
	v, err := environment(l, c, n, find)
	if err != nil {
		return nil, err
	}
	return v.list(), nil
}

func environment(l *records.Life, c *spec.Container, n Node, find Lookup) (*variables, error) {
	v := &variables{values: map[string]string{}}
	ns := l.Member.ID.Namespace
	if n.Services != nil && !l.NoServiceLinks {
		serviceVariables(n.Services(ns), v)
	}
	constants(l, v)
	for _, from := range c.EnvFrom {
		for _, s := range fromSources(from) {
			content, err := s.content(ns, find)
			if err != nil {
				return nil, err
			}
			for _, key := range slices.Sorted(maps.Keys(content)) {
				if name := from.Prefix + key; name != "" && !strings.ContainsAny(name, "=\x00") {
					v.set(name, string(content[key]))
				}
			}
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			v.set(e.Name, spec.Expand(e.Value, v.get))
			continue
		}
		value, ok, err := valueFrom(l, c, e.ValueFrom, n, find)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", e.Name, err)
		}
		if ok {
			v.set(e.Name, value)
		}
	}
	return v, nil
}

// constants are the STEAD_* variables: what cannot change during a life.
func constants(l *records.Life, v *variables) {
	id := l.Member.ID
	v.set("STEAD_MEMBER", id.MemberName())
	v.set("STEAD_SET", string(id.Set))
	v.set("STEAD_NAMESPACE", string(id.Namespace))
	v.set("STEAD_ORDINAL", strconv.Itoa(id.Ordinal))
	v.set("STEAD_FQDN", l.FQDN())
	v.set("STEAD_SERVICE", l.Service)
	v.set("STEAD_SET_DOMAIN", l.Service+"."+string(id.Namespace)+".svc."+l.Domain)
	v.set("STEAD_CLUSTER_DOMAIN", l.Domain)
	v.set("STEAD_ADDRESS", address(l))
	v.set("STEAD_NODE", string(l.Member.Node))
	v.set("STEAD_REVISION", string(l.Member.Revision))
}

func fromSources(from spec.EnvFromSource) []source {
	var out []source
	if r := from.ConfigMapRef; r != nil {
		out = append(out, source{KindConfigMap, r.Name, r.Optional})
	}
	if r := from.SecretRef; r != nil {
		out = append(out, source{KindSecret, r.Name, r.Optional})
	}
	return out
}

// keyFrom is the key that a variable takes its value from; false: it takes none.
func keyFrom(from *spec.EnvVarSource) (s source, key string, ok bool) {
	kind, ref := KindConfigMap, from.ConfigMapKeyRef
	if from.SecretKeyRef != nil {
		kind, ref = KindSecret, from.SecretKeyRef
	}
	if ref == nil {
		return source{}, "", false
	}
	return source{kind, ref.Name, ref.Optional}, ref.Key, true
}

func valueFrom(l *records.Life, c *spec.Container, from *spec.EnvVarSource, n Node, find Lookup) (string, bool, error) {
	if s, key, ok := keyFrom(from); ok {
		value, ok, err := s.key(l.Member.ID.Namespace, key, find)
		return string(value), ok, err
	}
	if from.ResourceFieldRef != nil {
		value, err := resourceValue(l, c, from.ResourceFieldRef, n)
		return value, err == nil, err
	}
	if from.FieldRef == nil {
		return "", false, nil
	}
	field, err := fieldOf(from.FieldRef.FieldPath)
	if err != nil {
		return "", false, err
	}
	return field(l, n), true, nil
}

// fieldOf finds what a fieldRef names. Errors: *MissingError.
func fieldOf(path string) (func(l *records.Life, n Node) string, error) {
	if name, key, ok := strings.Cut(path, "['"); ok && strings.HasSuffix(key, "']") {
		key = strings.TrimSuffix(key, "']")
		switch name {
		case "metadata.labels":
			return func(l *records.Life, _ Node) string { return Labels(l)[key] }, nil
		case "metadata.annotations":
			return func(l *records.Life, _ Node) string { return l.Template.Metadata.Annotations[key] }, nil
		}
	}
	if field, ok := fields[path]; ok {
		return field, nil
	}
	return nil, &MissingError{fmt.Sprintf("field %q is not known", path)}
}

// fields are those that a fieldRef names without a key.
var fields = map[string]func(*records.Life, Node) string{
	"metadata.name":           func(l *records.Life, _ Node) string { return l.Member.ID.MemberName() },
	"metadata.namespace":      func(l *records.Life, _ Node) string { return string(l.Member.ID.Namespace) },
	"metadata.uid":            func(l *records.Life, _ Node) string { return UID(l) },
	"spec.nodeName":           func(l *records.Life, _ Node) string { return string(l.Member.Node) },
	"spec.serviceAccountName": func(*records.Life, Node) string { return "" },
	"status.podIP":            func(l *records.Life, _ Node) string { return address(l) },
	"status.podIPs":           func(l *records.Life, _ Node) string { return address(l) },
	"status.hostIP":           func(_ *records.Life, n Node) string { return n.HostIP },
	"status.hostIPs":          func(_ *records.Life, n Node) string { return n.HostIP },
}
