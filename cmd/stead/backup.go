package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/store/etcdembed"
)

func backupCommand(c *cli) *cobra.Command {
	return group("backup", "Back up the embedded store, or create a store from a backup", backupSave(c), backupUnpack())
}

func backupSave(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "save FILE",
		Short: "Write a snapshot of the embedded store to a file, while it runs",
		Long: `Write a snapshot of the embedded store to a file, while it runs, and check the file. It
is readable by its owner only, and complete as soon as it exists. Secrets are encrypted in
it: also keep a copy of the server's secret.key, in another place. It contains no data of
members: back that up with the tools of your database.`,
		Example: `  stead backup save /var/backups/stead-monday.db`,
		Args:    exactly(1, "a file that does not exist"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.saveBackup(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
}

// saveBackup writes and checks the file under another name, and gives it its own then.
func (c *cli) saveBackup(ctx context.Context, file string, out io.Writer) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s already exists or cannot be checked; nothing was written", file)
	}
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	err = c.receiveBackup(ctx, f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	st, err := etcdembed.Check(part)
	if err != nil {
		return err
	}
	if err := os.Rename(part, file); err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(file)); err != nil {
		return err
	}
	fmt.Fprintf(out, "saved %s: %d keys at revision %d, %s\n", file, st.Keys, st.Rev, bytesText(st.Bytes))
	return nil
}

// receiveBackup has no time limit but ctx: a store may be large.
func (c *cli) receiveBackup(ctx context.Context, w io.Writer) error {
	stream, err := c.control.Backup(ctx, &proto.BackupRequest{})
	if err != nil {
		return err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(part.GetData()); err != nil {
			return err
		}
	}
}

func backupUnpack() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "unpack FILE",
		Short: "Create the embedded store of a stopped server from a backup",
		Long: `Create the embedded store of a stopped server from a backup. The backup is checked first.
The server's directory must not contain a store: move DIR/etcd away, and leave secret.key
and seen.json in place (on another machine, copy both there). The server then starts with
the store held: members continue to run, and nothing is decided before 'stead restore'.`,
		Example: `  stead backup unpack /var/backups/stead-monday.db
  stead backup unpack /var/backups/stead-monday.db --data-dir /srv/stead/server`,
		Args: exactly(1, "a file written by 'stead backup save'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := etcdembed.Check(args[0])
			if err != nil {
				return err
			}
			if err := etcdembed.Unpack(args[0], embeddedDir(dir), filepath.Base(args[0])); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "unpacked %d keys at revision %d into %s; start the server, then run 'stead restore'\n", st.Keys, st.Rev, embeddedDir(dir))
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", defaultDataDir, "the server's directory (for 'stead dev': the directory server in its --root)")
	return cmd
}

// embeddedDir is that of the embedded store of a server with this directory.
func embeddedDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }
