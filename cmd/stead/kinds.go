package main

import (
	"fmt"
	"sort"
	"strings"
)

// kinds maps what people type to the server's name of a kind.
var kinds = map[string][]string{
	"set":       {"sets", "sts", "statefulset", "statefulsets"},
	"member":    {"members", "pod", "pods", "po"},
	"volume":    {"volumes", "vol", "pvc", "persistentvolumeclaim", "persistentvolumeclaims"},
	"node":      {"nodes", "no"},
	"service":   {"services", "svc"},
	"configmap": {"configmaps", "cm", "config", "configs"},
	"secret":    {"secrets"},
	"event":     {"events", "ev"},
	"revision":  {"revisions", "rev", "controllerrevision", "controllerrevisions"},
}

// parseKind finds the kind a word names.
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
	return "", usageError{fmt.Errorf("unknown kind %q; known are %s", word, strings.Join(known, ", "))}
}

// parseTarget reads "kind name", "kind/name" or, with a default kind, "name".
func parseTarget(args []string, defaultKind string) (kind, name string, err error) {
	switch {
	case len(args) == 2:
		kind, err = parseKind(args[0])
		return kind, args[1], err
	case len(args) == 1 && strings.Contains(args[0], "/"):
		word, rest, _ := strings.Cut(args[0], "/")
		kind, err = parseKind(word)
		return kind, rest, err
	case len(args) == 1 && defaultKind != "":
		return defaultKind, args[0], nil
	}
	return "", "", usageError{fmt.Errorf("name an object as 'set db' or 'set/db'")}
}
