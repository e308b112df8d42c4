package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func applyCommand(c *cli) *cobra.Command {
	a := applier{cli: c}
	dryRun := ""
	cmd := &cobra.Command{
		Use:   "apply -f FILE | -k DIRECTORY",
		Short: "Create or update objects from manifests, all or nothing",
		Long: `Create or update objects from manifests, all or nothing. --dry-run (or --dry-run=server)
shows what the server would do; --dry-run=client checks the manifests without a server.

With --prune, objects that the manifests no longer name are deleted in the same step: the
sets, services, budgets, networkpolicies, configmaps and secrets in the namespaces of the manifests that -l
chooses (or --all). They are shown first. The members of a set are stopped in order, and its
volumes are kept, unless its retention policy says Delete; no volume is deleted otherwise.
Orphaned sets are left alone.`,
		Example: `  stead apply -f examples/etcd/etcd.yaml --wait
  helm template my-release chart/ | stead apply -f -
  stead apply -f db.yaml --dry-run=server
  stead apply -R -f manifests/
  stead apply -k overlays/production
  stead apply -f manifests/ --prune -l app=shop --dry-run`,
		Args: exactly(0, "no arguments, only -f"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.check(); err != nil {
				return err
			}
			switch dryRun {
			case dryRunClient:
				return checkManifests(cmd, &a.manifests, &a.request, c.namespace)
			case dryRunServer, "true": // true: as a flag without value was once written
				a.request.DryRun = true
			case "none", "false":
			default:
				return misuse("invalid --dry-run %q; use %s, %s or none", dryRun, dryRunServer, dryRunClient)
			}
			return a.run(cmd)
		},
	}
	a.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&a.prune, "prune", false, "also delete what the manifests no longer name, of what -l chooses")
	cmd.Flags().BoolVar(&a.all, "all", false, "with --prune, without -l: of everything in the namespaces of the manifests")
	cmd.Flags().StringVar(&dryRun, "dry-run", "none", "server: show what would be done, and change nothing ('stead diff' also shows the differences); client: check without a server")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunServer
	a.wait.add(cmd, "wait until every member of the applied sets is available, and show what each waits for")
	return cmd
}

// The values of --dry-run.
const (
	dryRunServer = "server"
	dryRunClient = "client"
)

// checkManifests reads manifests as the server does, without one, and prints the objects. What
// depends on stored objects is not checked.
func checkManifests(cmd *cobra.Command, from *manifests, request *proto.ApplyRequest, namespace string) error {
	files, err := from.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	o := manifest.Options{
		Namespace: spec.Namespace(namespace), SkipUnsupported: request.GetSkipUnsupported(),
		Host: spec.AnyHostAccess(), // the servers know what their operator allows
	}
	if request.GetSelector() != "" {
		if o.Selector, err = spec.ParseSelector(request.GetSelector()); err != nil {
			return misuse("-l: %w", err)
		}
	}
	sources := sourcesOf(files)
	read, problems, warnings := manifest.Parse(sources, o)
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+scalar.Plain(w.String()))
	}
	if len(problems) > 0 {
		return errors.New(joinedLines(problems))
	}
	objects, _ := manifest.NamedObjects(sources, o.Namespace) // they were read above
	for _, o := range objects {
		if read.Has(o.Kind, o.Namespace, o.Name) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s is valid (dry run, without a server)\n", strings.ToLower(o.Kind), o.Namespace, o.Name)
		}
	}
	return nil
}

// applier is one use of the verbs apply and diff.
type applier struct {
	*cli
	manifests
	request    proto.ApplyRequest
	prune, all bool
	wait       waitFlags
}

// addFlags adds the flags that name manifests and say how to apply them.
func (a *applier) addFlags(flags *pflag.FlagSet) {
	a.manifests.addFlags(flags, "")
	flags.StringVarP(&a.request.Selector, "selector", "l", "", "only objects with these labels: app=db,tier!=test")
	flags.BoolVar(&a.request.SkipUnsupported, "skip-unsupported", false, "skip objects of kinds that Stead does not support")
	flags.BoolVar(&a.request.RenameService, "rename-service", false, "allow a change of serviceName: all members restart, and both names resolve until they have")
}

// check refuses a wrong use.
func (a *applier) check() error {
	chosen := a.request.GetSelector() != ""
	if _, err := spec.ParseSelector(a.request.GetSelector()); chosen && err != nil {
		return misuse("-l: %w", err)
	}
	switch {
	case a.all && !a.prune:
		return misuse("--all is for --prune")
	case a.prune && a.all && chosen:
		return misuse("--prune takes -l LABELS or --all, not both")
	case a.prune && !a.all && !chosen:
		return misuse("--prune needs -l LABELS; to delete everything in the namespaces that the manifests do not name, write --all")
	case a.prune:
		a.request.Prune = &proto.Prune{All: a.all}
	}
	return nil
}

// run applies the manifests, prints what is done, and waits.
func (a *applier) run(cmd *cobra.Command) error {
	done, err := a.send(cmd)
	if err != nil {
		return err
	}
	printApplied(cmd.OutOrStdout(), done, a.request.GetDryRun())
	if a.request.GetDryRun() {
		return nil
	}
	return a.wait.then(cmd, func(ctx context.Context) error { return a.waitApplied(ctx, done, cmd.OutOrStdout()) })
}

// send sends the manifests, and prints what the server warns of. Where something may be deleted, or
// not all is applied, a dry run comes first: it shows what will be deleted, nothing else is, and a
// server that would do more is not asked to.
func (a *applier) send(cmd *cobra.Command) (done *proto.ApplyResponse, err error) {
	a.request.Namespace = a.namespace
	if a.request.Files, err = a.read(cmd.InOrStdin()); err != nil {
		return nil, err
	}
	special := a.request.GetPrune() != nil || a.request.GetSelector() != ""
	if special && !a.request.GetDryRun() {
		if err := a.rehearse(cmd); err != nil {
			return nil, err
		}
	}
	done, err = a.control.Apply(cmd.Context(), &a.request)
	for _, w := range done.GetWarnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+scalar.Plain(w))
	}
	if err == nil && special && !done.GetChose() {
		err = errOlderServer
	}
	return done, err
}

// errOlderServer is the error of a request that the server would carry out without what it asks
// beside. A dry run notices it.
var errOlderServer = errors.New("the server is older than this program, and does not know -l and --prune of apply; nothing was changed")

// rehearse asks what the request would do, and shows what it will delete.
func (a *applier) rehearse(cmd *cobra.Command) error {
	a.request.DryRun = true
	defer func() { a.request.DryRun = false }()
	would, err := a.control.Apply(cmd.Context(), &a.request)
	switch {
	case err != nil:
		return err
	case !would.GetChose():
		return errOlderServer
	case len(would.GetPruned()) == 0:
		a.request.Prune = nil // what comes meanwhile is not deleted
		return nil
	}
	fmt.Fprintln(cmd.OutOrStdout(), "--prune deletes what the manifests do not name:")
	for _, p := range would.GetPruned() {
		name := fmt.Sprintf("%s %s/%s", p.GetKind(), p.GetNamespace(), p.GetName())
		a.request.Prune.Expected = append(a.request.Prune.Expected, name)
		fmt.Fprintln(cmd.OutOrStdout(), "  "+name)
	}
	return nil
}

func printApplied(out io.Writer, done *proto.ApplyResponse, dryRun bool) {
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	for _, a := range done.GetApplied() {
		fmt.Fprintf(out, "%s %s/%s %s%s\n", strings.ToLower(a.GetKind()), a.GetNamespace(), a.GetName(), a.GetOutcome(), suffix)
		printEffects(out, a.GetEffects())
	}
	for _, p := range done.GetPruned() {
		outcome := "pruned"
		if p.GetKind() == proto.KindSet {
			outcome = "is being deleted (pruned)"
		}
		fmt.Fprintf(out, "%s %s/%s %s%s\n", p.GetKind(), p.GetNamespace(), p.GetName(), outcome, suffix)
		printEffects(out, p.GetEffects())
	}
}

func (c *cli) waitApplied(ctx context.Context, done *proto.ApplyResponse, out io.Writer) error {
	for _, a := range done.GetApplied() {
		if kind, err := parseKind(a.GetKind()); err != nil || kind != proto.KindSet {
			continue
		}
		ref := spec.SetRef{Namespace: spec.Namespace(a.GetNamespace()), Name: spec.SetName(a.GetName())}
		if err := c.waitSet(ctx, ref, forAvailable, out); err != nil {
			return err
		}
	}
	return nil
}
