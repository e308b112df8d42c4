package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
)

// exitDifferent is the exit code of a difference, as that of diff(1).
const exitDifferent = 1

func diffCommand(c *cli) *cobra.Command {
	var (
		files   []string
		options applyOptions
	)
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show how manifests differ from the stored objects, and what applying them would do",
		Long: `Show how manifests differ from the stored objects, both with their defaults filled in,
and what applying them would do: which members are created, stopped and restarted, and in
which order. The server decides as for 'apply', and changes nothing. Values of Secrets are
not shown. Exit code 0: no difference. 1: there are differences. 2: the comparison failed,
for example because the manifests would be refused.`,
		Example: `  stead diff -f examples/etcd.yaml
  helm template my-release chart/ | stead diff -f -`,
		Args: exactly(0, "no arguments, only -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			different := false
			err := c.dryRun(cmd, files, options, func(done *proto.ApplyResponse) (err error) {
				printWarnings(cmd.ErrOrStderr(), done)
				different, err = printDifference(cmd.OutOrStdout(), done)
				return err
			})
			switch {
			case err != nil && cmd.Context().Err() == nil:
				return usageError{errors.New(explainError(err))} // for its exit code
			case different:
				return exitCode(exitDifferent)
			}
			return err
		},
	}
	manifestFlags(cmd.Flags(), &files, &options)
	return cmd
}

// dryRun asks the server what applying the files would do.
func (c *cli) dryRun(cmd *cobra.Command, files []string, options applyOptions, then func(*proto.ApplyResponse) error) error {
	read, err := readManifests(files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	return c.with(func(control proto.ControlClient) error {
		ctx, cancel := call(cmd.Context())
		defer cancel()
		done, err := control.Apply(ctx, &proto.ApplyRequest{
			Files: read, Namespace: c.namespace, DryRun: true, SkipUnsupported: options.skipUnsupported, RenameService: options.renameService,
		})
		if err != nil {
			return err
		}
		return then(done)
	})
}

// printDifference shows what differs and what comes of it; false: nothing differs.
func printDifference(out io.Writer, done *proto.ApplyResponse) (different bool, err error) {
	for _, a := range done.GetApplied() {
		before, err := yamlText(a.GetBefore())
		if err != nil {
			return false, err
		}
		after, err := yamlText(a.GetAfter())
		if err != nil {
			return false, err
		}
		difference := unified(before, after)
		if difference == "" && len(a.GetEffects()) == 0 {
			continue
		}
		different = true
		name := fmt.Sprintf("%s %s/%s", strings.ToLower(a.GetKind()), a.GetNamespace(), a.GetName())
		stored := "stored " + name
		if before == "" {
			stored = "not stored yet"
		}
		fmt.Fprintf(out, "--- %s\n+++ applied %s\n%s", stored, name, difference)
		for _, e := range a.GetEffects() {
			fmt.Fprintln(out, "# "+e)
		}
	}
	return different, nil
}

// yamlText is a document as YAML; empty for none.
func yamlText(doc []byte) (string, error) {
	if len(doc) == 0 {
		return "", nil
	}
	text, err := manifest.JSONToYAML(doc)
	return string(text), err
}
