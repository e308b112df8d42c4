package files

import (
	"errors"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// IsNamed reports that the life takes files or variables from an object for which of is true.
func IsNamed(l *records.Life, of func(FileSource) bool) bool {
	is := func(s source) bool { return of(FileSource{s.kind, l.Member.ID.Namespace, s.name}) }
	for i := range l.Template.Spec.Volumes {
		if s, ok := volumeSource(&l.Template.Spec.Volumes[i]); ok && is(s) {
			return true
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
	_, err := MediaOf(l, find)
	return missingText(err)
}

// MissingEnv is the same of the variables of those containers for which needed is true: what Env
// would fail with, found without making a value.
func MissingEnv(l *records.Life, find Lookup, needed func(container string) bool) string {
	for c := range l.Template.Spec.All() {
		if !needed(c.Name) {
			continue
		}
		if err := missingEnvOf(l, c, find); err != nil {
			return missingText(err)
		}
	}
	return ""
}

func missingEnvOf(l *records.Life, c *spec.Container, find Lookup) error {
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
		if err := missingValue(ns, e.ValueFrom, find); err != nil {
			return fmt.Errorf("variable %s: %w", e.Name, err)
		}
	}
	return nil
}

func missingValue(ns spec.Namespace, from *spec.EnvVarSource, find Lookup) error {
	if s, key, ok := keyFrom(from); ok {
		_, _, err := s.key(ns, key, find)
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
