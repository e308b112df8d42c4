package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// kinds maps the server's name of a kind to the other words that users may type for it.
var kinds = map[string][]string{
	proto.KindSet:           {"sets", "sts", "statefulset", "statefulsets"},
	proto.KindMember:        {"members", "pod", "pods", "po"},
	proto.KindVolume:        {"volumes", "vol", "pvc", "persistentvolumeclaim", "persistentvolumeclaims"},
	proto.KindNode:          {"nodes", "no"},
	proto.KindService:       {"services", "svc"},
	proto.KindEndpoints:     {"endpoints", "ep"},
	proto.KindSlice:         {"endpointslices"},
	proto.KindBudget:        {"budgets", "pdb", "poddisruptionbudget", "poddisruptionbudgets"},
	proto.KindNetworkPolicy: {"networkpolicies", "netpol"},
	proto.KindQuota:         {"quotas", "resourcequota", "resourcequotas"},
	proto.KindConfigMap:     {"configmaps", "cm", "config", "configs"},
	proto.KindSecret:        {"secrets"},
	proto.KindEvent:         {"events", "ev"},
	proto.KindRevision:      {"revisions", "rev", "controllerrevision", "controllerrevisions"},
}

// parseKind returns the kind that a word names.
func parseKind(word string) (string, error) {
	word = strings.ToLower(word)
	if bare, group, ok := strings.Cut(word, "."); ok && slices.Contains([]string{"apps", "v1.apps", "policy", "v1.policy", "discovery.k8s.io", "v1.discovery.k8s.io", "networking.k8s.io", "v1.networking.k8s.io", "v1"}, group) {
		word = bare // as kubectl prints it
	}
	var known []string
	for kind, aliases := range kinds {
		if word == kind || slices.Contains(aliases, word) {
			return kind, nil
		}
		known = append(known, plural(kind))
	}
	slices.Sort(known)
	return "", misuse("unknown kind %q; use one of %s", word, strings.Join(known, ", "))
}

// plural is the word for several objects of a kind.
func plural(kind string) string {
	if bare, ok := strings.CutSuffix(kind, "y"); ok {
		return bare + "ies"
	}
	return kind + "s"
}

// wanted are the errors of parseTarget about what is missing, by its default kind.
var wanted = map[string]string{
	"":               "an object is needed, for example 'set db' or 'set/db'",
	proto.KindSet:    "a set is needed, for example 'db'",
	proto.KindMember: "a member is needed, for example 'db-0'",
}

// parseTarget reads "kind name", "kind/name" or, with a default kind, "name".
func parseTarget(args []string, defaultKind string) (kind, name string, err error) {
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
		return "", "", misuse("%s", wanted[defaultKind])
	}
	kind, err = parseKind(kind)
	return kind, name, err
}

// parseName reads the name of an object of a kind; whatever else is named is refused with why.
func parseName(args []string, only, why string) (string, error) {
	kind, name, err := parseTarget(args, only)
	if err == nil && kind != only {
		err = misuse(why, kind)
	}
	return name, err
}

// onSet is the RunE of a verb that calls do with the set that the arguments name; whatever else
// they name is refused with why.
func (c *cli) onSet(why string, do func(*cobra.Command, spec.SetRef) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		name, err := parseName(args, proto.KindSet, why+", not a %s")
		if err != nil {
			return err
		}
		return do(cmd, spec.SetRef{Namespace: spec.Namespace(c.namespace), Name: spec.SetName(name)})
	}
}

// completeTime is how long the shell is kept waiting for names.
const completeTime = 2 * time.Second

// completeNames completes one argument with the names of objects of the kinds.
func (c *cli) completeNames(kinds ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, kind := range kinds {
			names = append(names, c.names(cmd.Context(), kind, word)...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTarget completes a kind and the name of an object of it.
func (c *cli) completeTarget(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var words []string
	switch len(args) {
	case 0:
		words = slices.Sorted(maps.Keys(kinds))
	case 1:
		if kind, err := parseKind(args[0]); err == nil {
			words = c.names(cmd.Context(), kind, word)
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// names are the names of a kind that start with word; none when no server says so.
func (c *cli) names(ctx context.Context, kind, word string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	got, _ := c.control.List(ctx, &proto.ListRequest{Kind: kind, Namespace: c.namespace}) // silent: the shell shows what there is
	for _, o := range got.GetObjects() {
		if strings.HasPrefix(o.GetName(), word) {
			names = append(names, o.GetName())
		}
	}
	return names
}
