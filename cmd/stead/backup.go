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
	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store/etcdembed"
)

func backupCommand(c *cli) *cobra.Command {
	return group("backup", "Back up the store, check backups, or create a store from one",
		backupCreate(c), backupList(), backupVerify(), backupKeygen(), backupSave(c), backupUnpack())
}

func backupSave(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "save FILE",
		Short: "Write a bare snapshot of the store to a file, as etcdctl does",
		Long: `Write a snapshot of the store to a file, while it runs, and check the file: what etcdctl
snapshot save writes, and etcdutl restores. 'stead backup create' does more. The file is readable by its owner only, and complete as soon as it exists. Secrets are encrypted in
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
	err = c.receiveBackup(ctx, f, &proto.BackupRequest{})
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	st, err := etcdembed.Check(part, nil)
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
func (c *cli) receiveBackup(ctx context.Context, w io.Writer, r *proto.BackupRequest) error {
	stream, err := c.control.Backup(ctx, r)
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

func backupCreate(c *cli) *cobra.Command {
	var to string
	var plain bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a complete backup of the store, while it runs",
		Long: `Make a backup of the store, while it runs. The server opens the snapshot and reads every record
before it sends it. If the server has --backup-recipient, the backup is encrypted for these
keys, and holds the key of Secrets, too: that is all that new servers need. Otherwise it is
not encrypted, Secrets in it are, and secret.key of a server must be kept elsewhere. It
contains no data of members: back that up with the tools of your database.`,
		Example: `  stead backup create --to /var/backups/stead
  stead backup create --to monday.backup`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.createBackup(cmd.Context(), to, plain, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&to, "to", ".", "a file that does not exist, or a directory, in which the file gets a name of its own")
	cmd.Flags().BoolVar(&plain, "plain", false, "do not encrypt it, and leave the key of Secrets out")
	return cmd
}

func (c *cli) createBackup(ctx context.Context, to string, plain bool, out io.Writer) error {
	f, err := backup.Save(to, fmt.Sprintf(".stead-create-%d.part", os.Getpid()), func(w io.Writer) error {
		return c.receiveBackup(ctx, w, &proto.BackupRequest{Complete: true, Plain: plain})
	})
	if errors.Is(err, backup.ErrForeign) {
		return errors.New("the server is too old to make complete backups; upgrade it, or use 'stead backup save'")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "created %s: %d records, %s\n", f.Path, f.Keys(), bytesText(f.Size))
	if !f.Encrypted() {
		fmt.Fprintln(out, "it is not encrypted, and does not have the key of Secrets: keep a copy of the server's secret.key in another place")
	}
	if f.Held != "" {
		fmt.Fprintf(out, "the store is held: %s\n", scalar.Plain(f.Held))
	}
	if f.Unreadable > 0 {
		return fmt.Errorf("%d records in it cannot be read; 'stead backup verify' names them", f.Unreadable)
	}
	return nil
}

// embeddedDir is that of the embedded store of a server with this directory.
func embeddedDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }
