package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// manifestBytes limits one manifest file. The server refuses larger ones, too.
const manifestBytes = 8 << 20

func applyCommand(c *cli) *cobra.Command {
	var (
		files           []string
		dryRun          bool
		options         applyOptions
		wait            bool
		timeout         time.Duration
		applyCmdExample = `  stead apply -f examples/etcd.yaml --wait
  helm template my-release chart/ | stead apply -f -
  stead apply -f db.yaml --dry-run`
	)
	cmd := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Create or update objects from manifests, all or nothing",
		Example: applyCmdExample,
		Args:    exactly(0, "no arguments, only -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			read, err := readManifests(files, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				done, err := control.Apply(ctx, &proto.ApplyRequest{
					Files: read, Namespace: c.namespace, DryRun: dryRun, SkipUnsupported: options.skipUnsupported, RenameService: options.renameService,
				})
				if err != nil {
					return err
				}
				printApplied(cmd.OutOrStdout(), cmd.ErrOrStderr(), done, dryRun)
				if !wait || dryRun {
					return nil
				}
				return waitApplied(cmd.Context(), control, done, timeout, cmd.OutOrStdout())
			})
		},
	}
	flags := cmd.Flags()
	manifestFlags(flags, &files, &options)
	flags.BoolVar(&dryRun, "dry-run", false, "show what would be done, and change nothing; 'stead diff' also shows the differences")
	flags.BoolVar(&wait, "wait", false, "wait until every member of the applied sets is available, and show what each waits for")
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "time limit of --wait; exit code 3 when it expires")
	return cmd
}

// applyOptions change how manifests are applied.
type applyOptions struct {
	skipUnsupported, renameService bool
}

// manifestFlags add the flags that name manifests and say how to apply them.
func manifestFlags(flags *pflag.FlagSet, files *[]string, o *applyOptions) {
	flags.StringArrayVarP(files, "filename", "f", nil, "file, directory of .yaml, .yml and .json files, or - for standard input (repeatable)")
	flags.BoolVar(&o.skipUnsupported, "skip-unsupported", false, "skip objects of kinds that Stead does not support")
	flags.BoolVar(&o.renameService, "rename-service", false, "allow a change of serviceName: all members restart, and both names resolve until they have")
}

// readManifests reads every file once; a directory stands for the manifests in it.
func readManifests(names []string, stdin io.Reader) ([]*proto.File, error) {
	if len(names) == 0 {
		return nil, usageError{errors.New("no manifest given; use -f FILE, -f DIRECTORY, or -f - for standard input")}
	}
	var out []*proto.File
	for _, name := range names {
		if name == "-" {
			content, err := readBounded(stdin, "standard input")
			if err != nil {
				return nil, err
			}
			out = append(out, &proto.File{Name: "-", Content: content})
			continue
		}
		paths, err := manifestPaths(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			content, err := readBounded(f, path)
			f.Close()
			if err != nil {
				return nil, err
			}
			out = append(out, &proto.File{Name: path, Content: content})
		}
	}
	return out, nil
}

func readBounded(r io.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, manifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > manifestBytes {
		return nil, fmt.Errorf("%s is larger than %s; split it", name, bytesText(manifestBytes))
	}
	return content, nil
}

func manifestPaths(name string) ([]string, error) {
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
	var out []string
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".yaml", ".yml", ".json":
			out = append(out, filepath.Join(name, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s contains no .yaml, .yml or .json file", name)
	}
	sort.Strings(out)
	return out, nil
}

func printApplied(out, errOut io.Writer, done *proto.ApplyResponse, dryRun bool) {
	printWarnings(errOut, done)
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	for _, a := range done.GetApplied() {
		fmt.Fprintf(out, "%s %s/%s %s%s\n", strings.ToLower(a.GetKind()), a.GetNamespace(), a.GetName(), a.GetOutcome(), suffix)
		printEffects(out, a.GetEffects())
	}
}

func printWarnings(errOut io.Writer, done *proto.ApplyResponse) {
	for _, w := range done.GetWarnings() {
		fmt.Fprintln(errOut, "warning: "+scalar.Plain(w))
	}
}

func waitApplied(ctx context.Context, control proto.ControlClient, done *proto.ApplyResponse, timeout time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, a := range done.GetApplied() {
		if kind, err := parseKind(a.GetKind()); err != nil || kind != proto.KindSet {
			continue
		}
		ref := spec.SetRef{Namespace: spec.Namespace(a.GetNamespace()), Name: spec.SetName(a.GetName())}
		if err := waitSet(ctx, control, ref, forAvailable, out); err != nil {
			return err
		}
	}
	return nil
}
