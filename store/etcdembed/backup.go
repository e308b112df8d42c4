package etcdembed

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/store"
)

// BackupStatus tells what is in a backup.
type BackupStatus struct {
	Rev   int64 // the store's revision
	Keys  int
	Bytes int64
}

// Check reads a whole backup, compares it with its SHA-256, and looks whether it is a store. each is as of Read.
func Check(file string, each func(store.KV) error) (BackupStatus, error) {
	if err := checkSum(file); err != nil {
		return BackupStatus{}, fmt.Errorf("check backup %s: %w", file, err)
	}
	return Read(file, each)
}

// checkSum compares a file with the SHA-256 of all before it, which is its end.
func checkSum(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	content := info.Size() - sha256.Size
	if content <= 0 {
		return errors.New("it is too short to be one")
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, content); err != nil {
		return err
	}
	want, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return errors.New("it is cut short or damaged: its checksum differs")
	}
	return nil
}

// markFile names the backup from which the store beside it was unpacked.
const markFile = "unpacked"

// Unpack makes the store in dir, which has none, from a backup that was checked, and that messages call name. The
// next Start finds it, and UnpackedFrom tells; it names itself differently from the store that
// the backup was made of. What a call that failed, or crashed, has left is not taken for a
// store, and does not hinder the next call.
func Unpack(file, dir, name string) error {
	lock, err := lockDir(dir)
	if err == nil {
		err = errors.Join(place(file, dir, name), lock.Close())
	}
	if err != nil {
		return fmt.Errorf("unpack backup: %w", err)
	}
	return nil
}

// place is Unpack while dir is locked.
func place(file, dir, name string) error {
	data := filepath.Join(dir, dataDir)
	if _, err := os.Lstat(data); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s has a store already: move it away first (%w)", dir, errors.Join(os.ErrExist, err))
	}
	part := data + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	config, err := Config{Dir: dir}.withDefaults()
	if err != nil {
		return err
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: config.Name, OutputDataDir: part, PeerURLs: []string{identity.String()},
		InitialCluster: config.Name + "=" + identity.String(), InitialClusterToken: rand.Text(),
	})
	if err == nil {
		err = durable.Put(filepath.Join(dir, markFile), []byte(name), 0o600)
	}
	if err == nil {
		err = os.Rename(part, data)
	}
	if err == nil {
		err = durable.SyncDir(dir)
	}
	return err
}

// UnpackedFrom names the backup that the store was unpacked from, until Forget; "": none.
func (e *Embedded) UnpackedFrom() string { return e.unpacked }

// Forget forgets that the store was unpacked: whoever uses it has taken note.
func (e *Embedded) Forget() error {
	if err := os.Remove(filepath.Join(e.config.Dir, markFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget that the store was unpacked: %w", err)
	}
	return durable.SyncDir(e.config.Dir)
}

// unpacked is the content of the mark; "": there is none.
func unpacked(dir string) (string, error) {
	from, err := os.ReadFile(filepath.Join(dir, markFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(from), err
}
