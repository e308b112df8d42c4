package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func serverEnd(c *cli) *cobra.Command {
	var yes bool
	var to string
	cmd := &cobra.Command{
		Use:   "end --to FILE",
		Short: "End the store, and write its last backup, of which another store is made",
		Long: `End the store, and write its last backup: to go from the embedded etcd to an external one, or
back. From then on nothing is started, stopped or changed by this store, whoever starts its
servers again; members run on. Then stop all servers, make the other store of the file, start
the servers on it, and run 'stead restore' there. It may be given again when the file could
not be written.`,
		Example: `  stead server end --to /root/last.db`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return misuse("name with --to the file for the last backup")
			}
			return endStore(c, cmd, to, yes)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "a file that does not exist, for the last backup, as of 'stead backup save'")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// endStore saves once before the end, for trial, so that it is not ended when no backup can be made.
func endStore(c *cli, cmd *cobra.Command, to string, yes bool) error {
	out := cmd.OutOrStdout()
	would, err := c.control.End(cmd.Context(), &proto.EndRequest{DryRun: true})
	if err != nil {
		return err
	}
	printEffects(out, would.GetEffects())
	if err := confirm(cmd, "End this store?", yes); err != nil {
		return err
	}
	trial := fmt.Sprintf("%s.%d.trial", to, os.Getpid())
	_, taken := os.Lstat(to)
	if taken == nil {
		taken = fmt.Errorf("%s exists already", to)
	} else if errors.Is(taken, fs.ErrNotExist) {
		taken = errors.Join(c.saveBackup(cmd.Context(), trial, io.Discard), os.Remove(trial))
	}
	if taken != nil {
		return fmt.Errorf("nothing was ended: %w", taken)
	}
	if _, err := c.control.End(cmd.Context(), &proto.EndRequest{}); err != nil {
		return err
	}
	if err := c.saveBackup(cmd.Context(), to, out); err != nil {
		return fmt.Errorf("the store is ended, and its last backup is missing: give the command again with another file: %w", err)
	}
	fmt.Fprintln(out, "the store is ended; stop all servers, and make the other store of this file")
	return nil
}
