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
		files []string
		meant meant
	)
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show how manifests differ from what is stored, and what applying them would do",
		Long: `Show how manifests differ from what is stored, both with their defaults filled in, and
what applying them would do: who is created, stopped and restarted, in which order. The
server decides as 'apply' does, and changes nothing. Values of Secrets are not shown.
Exit code 0 when nothing differs, 1 when something does, 2 when it could not be told,
as when the manifests would be refused.`,
		Example: `  stead diff -f examples/etcd.yaml
  helm template my-release chart/ | stead diff -f -`,
		Args: exactly(0, "no arguments, only -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			different := false
			err := c.dryRun(cmd, files, meant, func(done *proto.ApplyResponse) (err error) {
				sayWarnings(cmd.ErrOrStderr(), done)
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
	manifestFlags(cmd.Flags(), &files, &meant)
	return cmd
}

// dryRun asks what applying the files would do.
func (c *cli) dryRun(cmd *cobra.Command, files []string, meant meant, then func(*proto.ApplyResponse) error) error {
	read, err := readManifests(files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	return c.with(func(control proto.ControlClient) error {
		ctx, cancel := call(cmd.Context())
		defer cancel()
		done, err := control.Apply(ctx, &proto.ApplyRequest{
			Files: read, Namespace: c.namespace, DryRun: true, SkipUnsupported: meant.skip, RenameService: meant.rename,
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
			stored = "nothing is stored"
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
