package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// kinds maps the server's name of a kind to the other words that users may type for it.
var kinds = map[string][]string{
	proto.KindSet:       {"sets", "sts", "statefulset", "statefulsets"},
	proto.KindMember:    {"members", "pod", "pods", "po"},
	proto.KindVolume:    {"volumes", "vol", "pvc", "persistentvolumeclaim", "persistentvolumeclaims"},
	proto.KindNode:      {"nodes", "no"},
	proto.KindService:   {"services", "svc"},
	proto.KindBudget:    {"budgets", "pdb", "poddisruptionbudget", "poddisruptionbudgets"},
	proto.KindConfigMap: {"configmaps", "cm", "config", "configs"},
	proto.KindSecret:    {"secrets"},
	proto.KindEvent:     {"events", "ev"},
	proto.KindRevision:  {"revisions", "rev", "controllerrevision", "controllerrevisions"},
}

// parseKind returns the kind that a word names.
func parseKind(word string) (string, error) {
	word = strings.ToLower(word)
	var known []string
	for kind, aliases := range kinds {
		if word == kind {
			return kind, nil
		}
		for _, a := range aliases {
			if word == a {
				return kind, nil
			}
		}
		known = append(known, kind+"s")
	}
	sort.Strings(known)
	return "", usageError{fmt.Errorf("unknown kind %q; use one of %s", word, strings.Join(known, ", "))}
}

// parseTarget reads "kind name", "kind/name" or, with a default kind, "name".
func parseTarget(args []string, defaultKind string) (kind, name string, err error) {
	example := "an object is needed, for example 'set db' or 'set/db'"
	if defaultKind != "" {
		example = map[string]string{proto.KindSet: "a set is needed, for example 'db'", proto.KindMember: "a member is needed, for example 'db-0'"}[defaultKind]
	}
	kind = defaultKind
	switch {
	case len(args) == 2:
		kind, name = args[0], args[1]
	case len(args) == 1 && strings.Contains(args[0], "/"):
		kind, name, _ = strings.Cut(args[0], "/")
	case len(args) == 1 && defaultKind != "":
		name = args[0]
	}
	if kind == "" || name == "" {
		return "", "", usageError{errors.New(example)}
	}
	kind, err = parseKind(kind)
	return kind, name, err
}

// parseSet reads the name of a set; whatever else is named is refused with why.
func (c *cli) parseSet(args []string, why string) (spec.SetRef, error) {
	kind, name, err := parseTarget(args, proto.KindSet)
	if err == nil && kind != proto.KindSet {
		err = usageError{fmt.Errorf("%s, not a %s", why, kind)}
	}
	return spec.SetRef{Namespace: spec.Namespace(c.namespace), Name: spec.SetName(name)}, err
}
