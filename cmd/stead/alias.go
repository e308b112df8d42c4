package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/proto"
)

// aliasCommands are the verbs of nodes where kubectl has them.
func aliasCommands(c *cli) []*cobra.Command {
	return []*cobra.Command{
		nodeAlias(nodeCordon(c, true), "cordon NODE", "  stead cordon host-a"),
		nodeAlias(nodeCordon(c, false), "uncordon NODE", "  stead uncordon host-a"),
		nodeAlias(nodeDrain(c), "drain NODE", "  stead drain host-a --dry-run\n  stead drain host-a --timeout 30m\n  stead uncordon host-a"),
		nodeAlias(nodeLabel(c), "label node NODE KEY=VALUE|KEY-...", "  stead label node host-a zone=north\n  stead label nodes/host-a zone-"),
		nodeAlias(nodeTaint(c), "taint node NODE KEY[=VALUE]:EFFECT|KEY[:EFFECT]-...", "  stead taint nodes host-a dedicated=kafka:NoSchedule"),
	}
}

// nodeAlias makes a verb of "stead node" one of stead: the word for nodes may come before the name.
func nodeAlias(verb *cobra.Command, use, example string) *cobra.Command {
	do, overwrite := verb.RunE, true
	verb.Use, verb.Example, verb.Args = use, example, nil
	verb.Short += " ('stead node " + verb.Name() + "')"
	if verb.Name() == "label" || verb.Name() == "taint" {
		verb.Flags().BoolVar(&overwrite, "overwrite", true, "replace another value, which is always done")
	}
	verb.RunE = func(cmd *cobra.Command, args []string) error {
		args, err := nodeArgs(cmd.Name(), args)
		switch {
		case err != nil:
			return err
		case !overwrite:
			return misuse("--overwrite=false is not supported: another value is always replaced")
		case len(args) != 1 && (strings.HasSuffix(cmd.Name(), "cordon") || cmd.Name() == "drain"):
			return misuse("%s takes the name of a node", cmd.CommandPath())
		}
		return do(cmd, args)
	}
	return verb
}

// nodeArgs are arguments without the word for nodes before the name.
func nodeArgs(verb string, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, misuse("%s needs the name of a node", verb)
	}
	word, name, slashed := strings.Cut(args[0], "/")
	kind, err := parseKind(word)
	switch {
	case err != nil && !slashed:
		return args, nil // a name
	case err != nil:
		return nil, err
	case kind != proto.KindNode:
		return nil, misuse("%s is for nodes; labels and annotations of a %s are in its manifest: change them there ('stead edit set NAME'), and apply", verb, kind)
	case slashed:
		return append([]string{name}, args[1:]...), nil
	}
	return args[1:], nil
}

// elsewhere says, of kubectl's verbs that are not here, what to write instead.
var elsewhere = map[string]string{
	"annotate":      "change metadata.annotations of the manifest ('stead edit set NAME'), and apply it",
	"api-resources": "'stead get --help' lists the kinds",
	"attach":        "write 'stead logs -f MEMBER', or 'stead exec -it MEMBER -- sh'",
	"auth":          "whoever may use the server's socket, or has a client file, may do everything; see 'stead client --help'",
	"autoscale":     "write 'stead scale SET --replicas N'",
	"cluster-info":  "write 'stead status'",
	"config":        "write --config FILE, or set STEAD_CONFIG; each cluster has a client file ('stead client create')",
	"create":        "write a manifest and 'stead apply -f FILE'",
	"debug":         "write 'stead exec -it MEMBER -- sh', and 'stead explain MEMBER' for what it waits for",
	"events":        "write 'stead get events', with -w to follow and --set SET for those of one set",
	"expose":        "write a Service into the manifest and apply it",
	"kustomize":     "write 'stead diff -k DIRECTORY', or 'stead apply -k DIRECTORY'",
	"patch":         "write 'stead edit KIND NAME', or change the manifest and apply it",
	"proxy":         "write 'stead port-forward MEMBER PORT'",
	"replace":       "write 'stead apply -f FILE'",
	"run":           "write a StatefulSet and 'stead apply -f FILE'",
	"set":           "write 'stead edit set NAME', or change the manifest and apply it",
}

// flagElsewhere says what to write instead of kubectl's flags that are not here, by verb and flag.
var flagElsewhere = map[string]string{
	"apply server-side":     "omit it: apply is always done by the server",
	"apply prune-allowlist": "omit it: --prune is about sets, services, budgets, networkpolicies, configmaps and secrets",
	"get field-selector":    "write -o jsonpath='{.items[?(@.status.phase==\"Running\")].metadata.name}', -l, or --set",
	"get template":          "write -o jsonpath=TEMPLATE",
	"delete now":            "a member is stopped within terminationGracePeriodSeconds of the set's template",
}

// absentVerb is the error of a verb that is not here.
func absentVerb(word string) error {
	if instead := elsewhere[word]; instead != "" {
		return misuse("there is no command %q; %s", word, instead)
	}
	return misuse("unknown command %q; see 'stead --help'", word)
}

// wrongFlag is the error of a flag that cmd does not have, or that has a wrong value. words are
// those of the command line.
func wrongFlag(cmd *cobra.Command, words []string, err error) error {
	if !cmd.HasParent() {
		for _, word := range words {
			if elsewhere[word] != "" {
				return absentVerb(word) // its flags are not known, either
			}
		}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if instead := flagElsewhere[cmd.Name()+" "+unknown.GetSpecifiedName()]; instead != "" {
			return misuse("%w; %s", err, instead)
		}
	}
	return misuse("%w; see '%s --help'", err, cmd.CommandPath())
}
