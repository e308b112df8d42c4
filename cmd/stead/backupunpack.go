package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store/etcdembed"
)

func backupUnpack() *cobra.Command {
	var dir, key string
	cmd := &cobra.Command{
		Use:   "unpack FILE",
		Short: "Create the embedded store of a stopped server from a backup",
		Long: `Create the embedded store of a stopped server from a backup. The backup is checked first.
The server's directory must not contain a store: move DIR/etcd away, and leave secret.key
and seen.json in place. On another machine, an encrypted backup brings secret.key with it;
for another one, first copy secret.key there. The server then starts with the store held:
members continue to run, and nothing is decided before 'stead restore'.`,
		Example: `  stead backup unpack /var/backups/stead-monday.db
  stead backup unpack monday.backup --key stead-backup.key --data-dir /srv/stead/server`,
		Args: exactly(1, "a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return unpackBackup(cmd.OutOrStdout(), args[0], key, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", defaultDataDir, "the server's directory (for 'stead dev': the directory server in its --root)")
	cmd.Flags().StringVar(&key, "key", "", "file with the private key, for an encrypted backup")
	return cmd
}

// unpackBackup writes the key before the store: a server that finds a store without its key does not start, and the
// command can be given again after a crash between any two steps.
func unpackBackup(out io.Writer, file, keyFile, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	o, err := openBackup(file, keyFile, dir)
	if err != nil {
		return err
	}
	defer o.Close()
	st, err := etcdembed.Check(o.path, nil)
	if err != nil {
		return err
	}
	secret := filepath.Join(dir, "secret.key")
	if o.secrets != nil {
		if err := putSecretKey(secret, o.secrets.Key); err != nil {
			return err
		}
	}
	if err := etcdembed.Unpack(o.path, embeddedDir(dir), filepath.Base(file)); err != nil {
		return err
	}
	fmt.Fprintf(out, "unpacked %d keys at revision %d into %s; start the server, then run 'stead restore'\n", st.Keys, st.Rev, embeddedDir(dir))
	if _, err := os.Stat(secret); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "before that, copy secret.key of a server of this cluster to %s, with mode 0600: the backup does not have it\n", secret)
	}
	return nil
}

// putSecretKey keeps the keys of the cluster, beside those of it that are there.
func putSecretKey(path string, key []byte) error {
	switch _, err := seal.Merge(path, key); {
	case errors.Is(err, seal.ErrKey):
		return fmt.Errorf("%s is not the key of this backup's cluster: move it away first", path)
	case err != nil:
		return fmt.Errorf("the key of Secrets in the backup: %w", err)
	}
	return nil
}
