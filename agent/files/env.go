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

// Env is the environment of a container: the STEAD_* constants, then envFrom, then
// env, each able to replace what came before it. Errors: *MissingError.
func Env(l *records.Life, c *spec.Container, n Node, find Lookup) ([]string, error) {
	v, err := environment(l, c, n, find)
	if err != nil {
		return nil, err
	}
	return v.list(), nil
}

func environment(l *records.Life, c *spec.Container, n Node, find Lookup) (*variables, error) {
	v := &variables{values: map[string]string{}}
	constants(l, v)
	ns := l.Member.ID.Namespace
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
		value, ok, err := valueFrom(l, e.ValueFrom, n, find)
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

func valueFrom(l *records.Life, from *spec.EnvVarSource, n Node, find Lookup) (string, bool, error) {
	kind, ref := KindConfigMap, from.ConfigMapKeyRef
	if from.SecretKeyRef != nil {
		kind, ref = KindSecret, from.SecretKeyRef
	}
	if ref != nil {
		s := source{kind, ref.Name, ref.Optional}
		value, ok, err := s.key(l.Member.ID.Namespace, ref.Key, find)
		return string(value), ok, err
	}
	if from.FieldRef == nil {
		return "", false, nil
	}
	value, err := field(l, from.FieldRef.FieldPath, n)
	return value, err == nil, err
}

// field is the value of a fieldRef.
func field(l *records.Life, path string, n Node) (string, error) {
	if name, key, ok := strings.Cut(path, "['"); ok && strings.HasSuffix(key, "']") {
		key = strings.TrimSuffix(key, "']")
		switch name {
		case "metadata.labels":
			return Labels(l)[key], nil
		case "metadata.annotations":
			return l.Template.Metadata.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return l.Member.ID.MemberName(), nil
	case "metadata.namespace":
		return string(l.Member.ID.Namespace), nil
	case "metadata.uid":
		return UID(l), nil
	case "spec.nodeName":
		return string(l.Member.Node), nil
	case "spec.serviceAccountName":
		return "", nil
	case "status.podIP", "status.podIPs":
		return address(l), nil
	case "status.hostIP", "status.hostIPs":
		return n.HostIP, nil
	}
	return "", &MissingError{fmt.Sprintf("field %q is not known", path)}
}
