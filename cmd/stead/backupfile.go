package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
)

// readSnapshot is a backup.Snapshots of what etcd writes.
func readSnapshot(file string, each func(store.KV) error) (int64, error) {
	st, err := etcdembed.Check(file, each)
	return st.Rev, err
}

func backupKeygen() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key that opens encrypted backups, and print its public key",
		Long: `Make a key that opens encrypted backups: it is written to FILE, for its owner only, and its
public key is printed. Give a file with the public key to the servers (--backup-recipient).
Keep FILE, and a copy of it, away from the servers and from the backups: whoever has both
can read every Secret and act as the cluster; without it, encrypted backups are lost.`,
		Example: `  stead backup keygen stead-backup.key`,
		Args:    exactly(1, "a file that does not exist"),
		RunE: func(cmd *cobra.Command, args []string) error {
			public, err := backup.NewKeyFile(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), public)
			return nil
		},
	}
}

func backupList() *cobra.Command {
	return &cobra.Command{
		Use:   "ls [DIRECTORY]",
		Short: "List the backups in a directory, and check that each is whole",
		Long: `List the backups in a directory on this machine (default: the current one). Each file is read
whole and compared with its checksum, for which no key is needed. The exit code is 1 if one
is damaged.`,
		Example: `  stead backup ls /var/backups/stead`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse("stead backup ls takes one directory")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return listBackups(cmd.OutOrStdout(), append(args, ".")[0])
		},
	}
}

func listBackups(out io.Writer, dir string) error {
	all, err := backup.List(dir)
	if err != nil {
		return err
	}
	damaged := 0
	t := newTable(out, "NAME", "MADE", "CLUSTER", "EPOCH", "RECORDS", "SIZE", "ENCRYPTED", "STATE")
	for _, k := range all {
		state := "whole"
		if k.Held != "" {
			state = "whole; the store was held"
		}
		if k.Unreadable > 0 {
			state = fmt.Sprintf("whole; %d records cannot be read", k.Unreadable)
		}
		if k.Err == nil {
			k.Err = checkWhole(filepath.Join(dir, k.Name))
		}
		if k.Err != nil {
			damaged++
			t.row(k.Name, "", "", "", "", bytesText(k.Size), "", k.Err.Error())
			continue
		}
		t.row(k.Name, age(k.Made), k.Cluster, fmt.Sprint(k.Epoch), fmt.Sprint(k.Keys()), bytesText(k.Size), yesNo(k.Encrypted()), state)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("%d of %d backups cannot be used", damaged, len(all))
	}
	return nil
}

func checkWhole(path string) error {
	f, err := backup.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Check()
}

func backupVerify() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a backup by opening it and reading every record",
		Long: `Check a backup: compare it with its checksum, open the store in it, and read every record as
a server does. Of an encrypted one the content is checked only with --key; then it is also
checked that the key of Secrets in it opens each of them. What is decrypted is on the disk of
the temporary directory (TMPDIR) meanwhile, in a file without a name. Also files of 'stead
backup save' can be checked.`,
		Example: `  stead backup verify /var/backups/stead/monday.backup
  stead backup verify /var/backups/stead/monday.backup --key stead-backup.key`,
		Args: exactly(1, "a backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verifyBackup(cmd.OutOrStdout(), args[0], key)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "file with the private key, made by 'stead backup keygen'")
	return cmd
}

func verifyBackup(out io.Writer, file, keyFile string) error {
	o, err := openBackup(file, keyFile, os.TempDir())
	if errors.Is(err, backup.ErrSealed) && o != nil {
		printManifest(out, &o.of.Manifest)
		fact(out, "checked", "it is whole; its content was not read: it is encrypted, give --key FILE")
		return nil
	}
	if err != nil {
		return err
	}
	defer o.Close()
	var key *seal.Key
	if o.secrets != nil {
		if key, err = seal.NewKey(o.secrets.Key); err != nil {
			return fmt.Errorf("the key of Secrets in %s: %w", file, err)
		}
	}
	content, err := backup.Examine(readSnapshot, o.path, key)
	if err != nil {
		return err
	}
	if o.of != nil {
		printManifest(out, &o.of.Manifest)
		if content.Cluster != o.of.Cluster || content.Epoch != o.of.Epoch || content.Rev != o.of.Rev {
			return fmt.Errorf("%s: %w: its manifest is of another store", file, backup.ErrDamaged)
		}
	} else {
		fact(out, "backup", "of cluster %s, epoch %d; as 'stead backup save' or etcdctl writes it", content.Cluster, content.Epoch)
	}
	for _, err := range content.Unreadable {
		fact(out, "", "%s", err.Error())
	}
	if content.Bad > 0 {
		return fmt.Errorf("%s: %d records cannot be read by this version (%s)", file, content.Bad, version)
	}
	switch {
	case key != nil:
		fact(out, "checked", "every record can be read; its key opens all %d that are sealed", content.Sealed)
	case content.Sealed > 0:
		fact(out, "checked", "every record can be read; %d are sealed: to restore it on another machine, you also need secret.key of a server", content.Sealed)
	default:
		fact(out, "checked", "every record can be read")
	}
	return nil
}

func printManifest(out io.Writer, m *backup.Manifest) {
	fact(out, "backup", "of cluster %s, epoch %d; made at %s by server %s, %s", m.Cluster, m.Epoch, m.Made.Format(time.DateTime), m.Server, m.Version)
	fact(out, "content", "%d records, %s", m.Keys(), bytesText(m.Bytes))
	if m.Encrypted() {
		var to []string
		for _, w := range m.For {
			to = append(to, w.Recipient)
		}
		fact(out, "for", "%s", strings.Join(to, ", "))
	}
	if m.Held != "" {
		fact(out, "held", "the store was held: %s", m.Held)
	}
}

// openedBackup is the snapshot of a backup in a file.
type openedBackup struct {
	of      *backup.File    // nil: the file is a snapshot itself
	secrets *backup.Secrets // nil: it has none
	path    string          // of the snapshot
	plain   *os.File        // which is here; nil: path is the backup
}

// Close forgets what was decrypted.
func (o *openedBackup) Close() {
	if o.plain != nil {
		_ = o.plain.Close() // it has no name any more
	}
}

// openBackup checks a backup and takes its snapshot out, into a file without a name in dir. A file of 'stead backup save' is
// a snapshot itself. Of one that is encrypted without a key (backup.ErrSealed) it still returns what it is of.
func openBackup(file, keyFile, dir string) (*openedBackup, error) {
	f, err := backup.Open(file)
	if errors.Is(err, backup.ErrForeign) {
		if _, raw := etcdembed.Check(file, nil); raw != nil {
			return nil, errors.Join(err, raw)
		}
		return &openedBackup{path: file}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Check(); err != nil {
		return nil, err
	}
	var key *backup.PrivateKey
	if keyFile != "" {
		loaded, err := backup.LoadPrivate(keyFile)
		if err != nil {
			return nil, err
		}
		key = &loaded
	}
	plain, err := backup.Unnamed(dir)
	if err != nil {
		return nil, err
	}
	o := &openedBackup{of: f, plain: plain, path: fmt.Sprintf("/proc/self/fd/%d", plain.Fd())}
	if o.secrets, err = f.Unseal(key, plain); err != nil {
		o.Close()
		return o, err
	}
	return o, nil
}

// printBackups prints, for 'status', the scheduled backups of the server that answered; else nothing.
func printBackups(out io.Writer, info *proto.InfoResponse) {
	var st records.BackupState
	if len(info.GetBackupJson()) == 0 || json.Unmarshal(info.GetBackupJson(), &st) != nil {
		return
	}
	last := "no good one yet"
	if !st.LastGood.IsZero() {
		last = fmt.Sprintf("the last good one is %s old (%s)", age(st.LastGood), bytesText(st.Bytes))
	}
	kind := "not encrypted"
	if st.Encrypted {
		kind = "encrypted"
	}
	fact(out, "backups", "%d in %s of server %s, every %s, %s; %s", st.Kept, st.Dir, st.Server, st.Every, kind, last)
	if st.Damaged > 0 {
		fact(out, "", "%d of them cannot be used; see 'stead backup ls %s'", st.Damaged, st.Dir)
	}
	if st.Trouble != "" {
		fact(out, "", "NOT BACKED UP: %s", st.Trouble)
	}
}
