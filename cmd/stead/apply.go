package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// manifestBytes limits one manifest file. The server refuses larger ones, too.
const manifestBytes = 8 << 20

func applyCommand(c *cli) *cobra.Command {
	var (
		files   []string
		request proto.ApplyRequest
		wait    waitFlags
		dryRun  string
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or update objects from manifests, all or nothing",
		Long: `Create or update objects from manifests, all or nothing. --dry-run (or --dry-run=server)
shows what the server would do; --dry-run=client checks the manifests without a server.`,
		Example: `  stead apply -f examples/etcd.yaml --wait
  helm template my-release chart/ | stead apply -f -
  stead apply -f db.yaml --dry-run=server`,
		Args: exactly(0, "no arguments, only -f"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch dryRun {
			case dryRunClient:
				return checkManifests(cmd, files, &request, c.namespace)
			case dryRunServer, "true": // true: as a flag without value was once written
				request.DryRun = true
			case "none", "false":
			default:
				return misuse("invalid --dry-run %q; use %s, %s or none", dryRun, dryRunServer, dryRunClient)
			}
			done, err := c.apply(cmd, files, &request)
			if err != nil {
				return err
			}
			printApplied(cmd.OutOrStdout(), done, request.DryRun)
			if request.DryRun {
				return nil
			}
			return wait.then(cmd, func(ctx context.Context) error { return c.waitApplied(ctx, done, cmd.OutOrStdout()) })
		},
	}
	manifestFlags(cmd.Flags(), &files, &request)
	cmd.Flags().StringVar(&dryRun, "dry-run", "none", "server: show what would be done, and change nothing ('stead diff' also shows the differences); client: check without a server")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunServer
	wait.add(cmd, "wait until every member of the applied sets is available, and show what each waits for")
	return cmd
}

// The values of --dry-run.
const (
	dryRunServer = "server"
	dryRunClient = "client"
)

// checkManifests reads manifests as the server does, without one, and prints the objects. What
// depends on stored objects is not checked.
func checkManifests(cmd *cobra.Command, names []string, request *proto.ApplyRequest, namespace string) error {
	files, err := readManifests(names, cmd.InOrStdin())
	if err != nil {
		return err
	}
	sources := sourcesOf(files)
	_, problems, warnings := manifest.Parse(sources, manifest.Options{Namespace: spec.Namespace(namespace), SkipUnsupported: request.GetSkipUnsupported()})
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+scalar.Plain(w.String()))
	}
	if len(problems) > 0 {
		return errors.New(joinedLines(problems))
	}
	objects, _ := manifest.NamedObjects(sources, spec.Namespace(namespace)) // they were read above
	for _, o := range objects {
		if appliable[o.Kind] != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s is valid (dry run, without a server)\n", strings.ToLower(o.Kind), o.Namespace, o.Name)
		}
	}
	return nil
}

func sourcesOf(files []*proto.File) []manifest.Source {
	out := make([]manifest.Source, len(files))
	for i, f := range files {
		out[i] = manifest.Source{Name: f.GetName(), Content: f.GetContent()}
	}
	return out
}

// manifestFlags add the flags that name manifests and say how to apply them.
func manifestFlags(flags *pflag.FlagSet, files *[]string, r *proto.ApplyRequest) {
	flags.StringArrayVarP(files, "filename", "f", nil, "file, directory of .yaml, .yml and .json files, or - for standard input (repeatable)")
	flags.BoolVar(&r.SkipUnsupported, "skip-unsupported", false, "skip objects of kinds that Stead does not support")
	flags.BoolVar(&r.RenameService, "rename-service", false, "allow a change of serviceName: all members restart, and both names resolve until they have")
}

// apply sends the manifests of names with request, and prints what the server warns of.
func (c *cli) apply(cmd *cobra.Command, names []string, request *proto.ApplyRequest) (_ *proto.ApplyResponse, err error) {
	request.Namespace = c.namespace
	if request.Files, err = readManifests(names, cmd.InOrStdin()); err != nil {
		return nil, err
	}
	done, err := c.control.Apply(cmd.Context(), request)
	for _, w := range done.GetWarnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+scalar.Plain(w))
	}
	return done, err
}

// readManifests reads every file once, and the manifests in every directory.
func readManifests(names []string, stdin io.Reader) (out []*proto.File, err error) {
	if len(names) == 0 {
		return nil, misuse("no manifest given; use -f FILE, -f DIRECTORY, or -f - for standard input")
	}
	for _, name := range names {
		paths, err := manifestPaths(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := readManifest(path, stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, &proto.File{Name: path, Content: content})
		}
	}
	return out, nil
}

// readManifest reads the file at path; "-": stdin.
func readManifest(path string, stdin io.Reader) ([]byte, error) {
	name, in := "standard input", stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		name, in = path, f
	}
	content, err := io.ReadAll(io.LimitReader(in, manifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > manifestBytes {
		return nil, fmt.Errorf("%s is larger than %s; split it", name, bytesText(manifestBytes))
	}
	return content, nil
}

// manifestPaths returns the manifests that name is about: a file, or those of a directory.
func manifestPaths(name string) (out []string, err error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".yaml", ".yml", ".json":
			out = append(out, filepath.Join(name, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s contains no .yaml, .yml or .json file", name)
	}
	return out, nil
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
