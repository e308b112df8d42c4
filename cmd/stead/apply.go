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
)

// manifestBytes bounds one manifest file; the server refuses larger ones anyway.
const manifestBytes = 8 << 20

func applyCommand(c *cli) *cobra.Command {
	var (
		files           []string
		dryRun          bool
		meant           meant
		wait            bool
		timeout         time.Duration
		applyCmdExample = `  stead apply -f examples/etcd.yaml --wait
  helm template my-release chart/ | stead apply -f -
  stead apply -f db.yaml --dry-run`
	)
	cmd := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Make objects equal to manifests, all or nothing",
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
					Files: read, Namespace: c.namespace, DryRun: dryRun, SkipUnsupported: meant.skip, RenameService: meant.rename,
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
	manifestFlags(flags, &files, &meant)
	flags.BoolVar(&dryRun, "dry-run", false, "say what would be done and do nothing; 'stead diff' also shows what differs")
	flags.BoolVar(&wait, "wait", false, "wait until every member of the applied sets is available, showing who waits for what")
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits; exit code 3 when it is over")
	return cmd
}

// meant is what a person says of manifests beside them.
type meant struct{ skip, rename bool }

// manifestFlags name the manifests of a verb, and what is meant by them.
func manifestFlags(flags *pflag.FlagSet, files *[]string, m *meant) {
	flags.StringArrayVarP(files, "filename", "f", nil, "file, directory of .yaml, .yml and .json files, or - (may be repeated)")
	flags.BoolVar(&m.skip, "skip-unsupported", false, "leave out objects of kinds that Stead does not run")
	flags.BoolVar(&m.rename, "rename-service", false, "let sets get another serviceName: their members restart for it, and both names resolve until all have")
}

// readManifests reads every file once; a directory stands for the manifests in it.
func readManifests(names []string, stdin io.Reader) ([]*proto.File, error) {
	if len(names) == 0 {
		return nil, usageError{errors.New("a manifest is needed: -f FILE, -f DIRECTORY or -f - for standard input")}
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
		return nil, fmt.Errorf("%s holds no .yaml, .yml or .json file", name)
	}
	sort.Strings(out)
	return out, nil
}

func printApplied(out, errOut io.Writer, done *proto.ApplyResponse, dryRun bool) {
	sayWarnings(errOut, done)
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	for _, a := range done.GetApplied() {
		fmt.Fprintf(out, "%s %s/%s %s%s\n", strings.ToLower(a.GetKind()), a.GetNamespace(), a.GetName(), a.GetOutcome(), suffix)
		sayEffects(out, a.GetEffects())
	}
}

func sayWarnings(errOut io.Writer, done *proto.ApplyResponse) {
	for _, w := range done.GetWarnings() {
		fmt.Fprintln(errOut, "warning: "+spec.Plain(w))
	}
}

func waitApplied(ctx context.Context, control proto.ControlClient, done *proto.ApplyResponse, timeout time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, a := range done.GetApplied() {
		if kind, err := parseKind(a.GetKind()); err != nil || kind != "set" {
			continue
		}
		ref := spec.SetRef{Namespace: spec.Namespace(a.GetNamespace()), Name: spec.SetName(a.GetName())}
		if err := waitSet(ctx, control, ref, forAvailable, out); err != nil {
			return err
		}
	}
	return nil
}
