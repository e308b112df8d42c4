package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// inKubernetes is how kubectl prints the kinds that have another name in Kubernetes.
var inKubernetes = map[string]string{
	proto.KindSet: "statefulset.apps", proto.KindMember: "pod", proto.KindVolume: "persistentvolumeclaim",
	proto.KindClaim: "persistentvolumeclaim", proto.KindBudget: "poddisruptionbudget.policy", proto.KindRevision: "controllerrevision.apps",
	proto.KindEndpoints: "endpoints", proto.KindSlice: "endpointslice.discovery.k8s.io", proto.KindNetworkPolicy: "networkpolicy.networking.k8s.io", proto.KindQuota: "resourcequota",
}

// everything are the kinds of "get all", as kubectl means it: what runs, and how it is reached.
var everything = []string{"pods", "services", "statefulsets"}

// target is what arguments name: all objects of a kind, or some of them.
type target struct {
	kind      string
	word      string   // the kind in the user's language: set or statefulset.apps
	names     []string // empty: all of the kind
	namespace string   // of a file's objects; "": that of the command line
}

// newTarget reads the word for a kind, and keeps the language of it.
func newTarget(word string) (target, error) {
	kind, err := parseKind(word)
	t := target{kind: kind, word: kind}
	own := []string{kind, plural(kind), "vol", "rev", "ev"}
	if k := inKubernetes[kind]; k != "" && !slices.Contains(own, strings.ToLower(word)) {
		t.word = k
	}
	return t, err
}

// parseTargets reads "kind", "kind,kind", "all", each with names after it, or several "kind/name".
// The targets are those of different kinds, in the order of the arguments.
func parseTargets(args []string) (out []target, err error) {
	if len(args) == 0 {
		return nil, misuse("%s", wanted[""])
	}
	if strings.Contains(args[0], "/") {
		return parseSlashed(args)
	}
	words := strings.Split(args[0], ",")
	if strings.EqualFold(args[0], "all") {
		words = everything
	}
	for _, word := range words {
		t, err := newTarget(word)
		if err != nil {
			return nil, err
		}
		if out, err = addTarget(out, t, args[1:]...); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseSlashed reads several "kind/name".
func parseSlashed(args []string) (out []target, err error) {
	for _, arg := range args {
		word, name, ok := strings.Cut(arg, "/")
		if !ok {
			return nil, misuse("%q has no kind; after %q write all as KIND/NAME", arg, args[0])
		}
		t, err := newTarget(word)
		if err != nil {
			return nil, err
		}
		if out, err = addTarget(out, t, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addTarget adds names to the target of their kind and namespace in list.
func addTarget(list []target, t target, names ...string) ([]target, error) {
	if slices.ContainsFunc(names, func(name string) bool { return name == "" || strings.Contains(name, "/") }) {
		return nil, misuse("%s", wanted[""])
	}
	i := slices.IndexFunc(list, func(o target) bool { return o.kind == t.kind && o.namespace == t.namespace })
	if i < 0 {
		i, list = len(list), append(list, t)
	}
	for _, name := range names {
		if !slices.Contains(list[i].names, name) {
			list[i].names = append(list[i].names, name)
		}
	}
	return list, nil
}

// appliable are the kinds that manifests have here, by the words of manifests.
var appliable = map[string]string{
	"StatefulSet": proto.KindSet, "Service": proto.KindService, "PodDisruptionBudget": proto.KindBudget,
	"Endpoints": proto.KindEndpoints, "EndpointSlice": proto.KindSlice, "ConfigMap": proto.KindConfigMap, "Secret": proto.KindSecret, "NetworkPolicy": proto.KindNetworkPolicy, "ResourceQuota": proto.KindQuota,
}

// filesTargets reads which objects files name. Those of kinds that apply leaves out are left
// out here, too, with one warning.
func filesTargets(cmd *cobra.Command, from *manifests, namespace string) (out []target, err error) {
	read, err := from.read(cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	names, problems := manifest.NamedObjects(sourcesOf(read), spec.Namespace(namespace))
	if len(problems) > 0 {
		return nil, errors.New(joinedLines(problems))
	}
	var left, kept []string
	for _, o := range names {
		kind := appliable[o.Kind]
		if o.Kind == "PersistentVolumeClaim" {
			kept = append(kept, o.Name)
			continue
		}
		if kind == "" {
			left = append(left, o.Kind+" "+o.Name)
			continue
		}
		t := target{kind: kind, word: inKubernetes[kind], namespace: string(o.Namespace)}
		if t.word == "" {
			t.word = kind
		}
		if out, err = addTarget(out, t, o.Name); err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: left out, because Stead does not have their kinds: %s\n", plainLines(strings.Join(left, ", ")))
	}
	if len(kept) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: PersistentVolumeClaims are kept with their volumes; to give them up write 'stead delete pvc %s'\n", plainLines(strings.Join(kept, " ")))
	}
	if len(out) == 0 {
		return nil, errors.New("the files name no object of a kind that Stead has")
	}
	return out, nil
}

// joinedLines is the text of problems, one a line.
func joinedLines(problems []manifest.Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
