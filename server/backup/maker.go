package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

// MakerConfig is what a Maker needs.
type MakerConfig struct {
	Server, Version string
	// Store is the server's own, every answer of which is judged (SAFETY S8).
	Store store.Store
	// Snapshot writes all that the store holds at one moment; Read goes through that.
	Snapshot func(context.Context, io.Writer) error
	Read     Snapshots
	// KeyFile is the server's secret.key.
	KeyFile string
	// Recipients are those for whom backups are encrypted; none: they are not.
	Recipients []PublicKey
	// Spool is a directory of the server's own, where a snapshot is examined before it is written elsewhere. It has no
	// name there, so that nothing is left of it, however the server ends.
	Spool string
	// Spare is how many bytes of the disk of Spool stay free beside the snapshot, for the store is often there, too;
	// zero: 256 MiB.
	Spare int64
	Now   func() time.Time // zero: time.Now
}

// defaultSpare is MakerConfig.Spare.
const defaultSpare = 256 << 20

// Maker makes backups, one at a time. It is safe for concurrent use.
type Maker struct {
	cfg  MakerConfig
	turn chan struct{} // taken by who makes one
}

// NewMaker starts nothing.
func NewMaker(cfg MakerConfig) *Maker {
	if cfg.Spare == 0 {
		cfg.Spare = defaultSpare
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Maker{cfg: cfg, turn: make(chan struct{}, 1)}
}

// Encrypts reports whether there are recipients.
func (m *Maker) Encrypts() bool { return len(m.cfg.Recipients) > 0 }

// Make writes a backup of the store as it is now, or later. It is examined before the first byte is written. plain: it is
// not encrypted, and has no key in it, though there are recipients. Nothing of what was written counts after an error.
func (m *Maker) Make(ctx context.Context, w io.Writer, plain bool) (Manifest, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return Manifest{}, ctx.Err()
	}
	out, err := m.make(ctx, w, plain)
	if err != nil {
		return Manifest{}, fmt.Errorf("make backup: %w", err)
	}
	return out, nil
}

func (m *Maker) make(ctx context.Context, w io.Writer, plain bool) (out Manifest, err error) {
	now, kvs, err := m.cfg.Store.Get(ctx, store.ClusterKey, store.EpochKey)
	if err != nil {
		return out, err
	}
	spool, err := m.spool(ctx)
	if err != nil {
		return out, err
	}
	defer spool.Close()
	secret, key, err := m.key()
	if err != nil {
		return out, err
	}
	content, err := Examine(m.cfg.Read, name(spool), key)
	switch {
	case err != nil:
		return out, err
	case content.Cluster != string(kvs[store.ClusterKey].Value), strconv.FormatInt(content.Epoch, 10) != string(kvs[store.EpochKey].Value):
		return out, fmt.Errorf("the snapshot is of cluster %s at epoch %d, and the store is not any more", content.Cluster, content.Epoch)
	case content.Rev < int64(now):
		return out, fmt.Errorf("the snapshot is of revision %d, and the store was at %d before: the member of etcd that it is from lags; try again", content.Rev, now)
	}
	sum := sha256.New()
	size, err := rewound(spool, func() (int64, error) { return io.Copy(sum, spool) })
	if err != nil {
		return out, err
	}
	out = Manifest{
		Cluster: content.Cluster, Epoch: content.Epoch, Rev: content.Rev, Held: content.Held,
		Kinds: content.Kinds, Unreadable: content.Bad,
		Made: m.cfg.Now().UTC().Truncate(time.Second), Server: m.cfg.Server, Version: m.cfg.Version,
		Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil)),
	}
	to := m.cfg.Recipients
	if plain {
		to = nil
	}
	_, err = rewound(spool, func() (int64, error) {
		out, err = write(w, out, spool, Secrets{Key: secret}, to)
		return 0, err
	})
	return out, err
}

// spool is a snapshot in a file without a name.
func (m *Maker) spool(ctx context.Context) (*os.File, error) {
	st, err := m.cfg.Store.Status(ctx)
	if err != nil {
		return nil, err
	}
	if err := roomFor(m.cfg.Spool, st.SizeBytes+m.cfg.Spare); err != nil {
		return nil, err
	}
	f, err := Unnamed(m.cfg.Spool)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.Snapshot(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// key is the cluster's key, as it is written and as it opens; nil where nothing was sealed yet.
func (m *Maker) key() ([]byte, *seal.Key, error) {
	key, err := seal.Load(m.cfg.KeyFile)
	if err != nil {
		return nil, nil, err
	}
	secret, err := os.ReadFile(m.cfg.KeyFile)
	return secret, key, err
}

// Unnamed is a file in dir that no name leads to: nothing is left of it when it is closed.
func Unnamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".stead-snapshot-*") // 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// name leads to an open file while it is open.
func name(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// rewound calls do with f at its beginning.
func rewound(f *os.File, do func() (int64, error)) (int64, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return do()
}

// roomFor refuses to begin what a disk has no room for.
func roomFor(dir string, bytes int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < bytes {
		return fmt.Errorf("the disk of %s has %d bytes free, and %d are needed: remove what is not needed there", dir, free, bytes)
	}
	return nil
}
