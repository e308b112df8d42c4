package files

import (
	"errors"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// IsNamed reports that the life takes files, variables or credentials from an object for which of
// is true.
func IsNamed(l *records.Life, of func(FileSource) bool) bool {
	if isPullSecret(l, of) {
		return true
	}
	is := func(s source) bool { return of(FileSource{s.kind, l.Member.ID.Namespace, s.name}) }
	for i := range l.Template.Spec.Volumes {
		for _, p := range partsOf(&l.Template.Spec.Volumes[i]) {
			if p.isObject() && is(p.source) {
				return true
			}
		}
	}
	for c := range l.Template.Spec.All() {
		for _, from := range c.EnvFrom {
			for _, s := range fromSources(from) {
				if is(s) {
					return true
				}
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				continue
			}
			if s, _, ok := keyFrom(e.ValueFrom); ok && is(s) {
				return true
			}
		}
	}
	return false
}

// MissingMedia is the sentence about the first ConfigMap, Secret or key that a volume of
// the life needs and that is not there; empty when nothing is missing.
func MissingMedia(l *records.Life, find Lookup) string {
	_, err := MediaOf(l, Node{}, find) // nothing is missing for what a node has
	return missingText(err)
}

// MissingEnv is the same of the variables of those containers for which needed is true: what Env
// would fail with, found without making a value, and what paths that are made of variables lack.
func MissingEnv(l *records.Life, n Node, find Lookup, needed func(container string) bool) string {
	for c := range l.Template.Spec.All() {
		if !needed(c.Name) {
			continue
		}
		if err := missingEnvOf(l, c, n, find); err != nil {
			return missingText(err)
		}
	}
	return ""
}

func missingEnvOf(l *records.Life, c *spec.Container, n Node, find Lookup) error {
	ns := l.Member.ID.Namespace
	for _, from := range c.EnvFrom {
		for _, s := range fromSources(from) {
			if _, err := s.content(ns, find); err != nil {
				return err
			}
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if err := missingValue(l, c, e.ValueFrom, find); err != nil {
			return fmt.Errorf("variable %s: %w", e.Name, err)
		}
	}
	return missingSubPath(l, c, n, find)
}

func missingValue(l *records.Life, c *spec.Container, from *spec.EnvVarSource, find Lookup) error {
	if s, key, ok := keyFrom(from); ok {
		_, _, err := s.key(l.Member.ID.Namespace, key, find)
		return err
	}
	if from.ResourceFieldRef != nil {
		_, err := containerOf(l, c, from.ResourceFieldRef)
		return err
	}
	if from.FieldRef == nil {
		return nil
	}
	_, err := fieldOf(from.FieldRef.FieldPath)
	return err
}

func missingText(err error) string {
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		return err.Error()
	}
	return ""
}
