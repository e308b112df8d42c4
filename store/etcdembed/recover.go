package etcdembed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/store/etcdstore"
)

// asideDir has what the member had before Recover, recoverDir what Recover works on.
const (
	asideDir   = "data.before-recover"
	recoverDir = "recover"
)

// MembersIn reads from the stopped member in dir all members of its store, as far as it knew. Members that were added last
// may be missing. A directory that a process uses is ErrLocked.
func MembersIn(dir string) ([]stores.StoreMember, error) {
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	from, err := recoverable(dir)
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(from, "member", "snap", "db"), 0o400, &bbolt.Options{ReadOnly: true, Timeout: openTime, OpenFile: openThere})
	if err != nil {
		return nil, fmt.Errorf("read the store's members: %w", err)
	}
	defer db.Close()
	var list []*etcdserverpb.Member
	err = db.View(func(tx *bbolt.Tx) error {
		members := tx.Bucket([]byte("members"))
		if members == nil {
			return errDamaged
		}
		return members.ForEach(func(_, value []byte) error {
			var m struct {
				ID        uint64   `json:"id"`
				Name      string   `json:"name"`
				PeerURLs  []string `json:"peerURLs"`
				IsLearner bool     `json:"isLearner"`
			}
			if err := json.Unmarshal(value, &m); err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
			list = append(list, &etcdserverpb.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, IsLearner: m.IsLearner})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the store's members: %w", err)
	}
	return membersOf(list), nil
}

// recoverable is where the data of the member in dir is: aside after a Recover that did not come to its end.
func recoverable(dir string) (string, error) {
	data, aside := filepath.Join(dir, dataDir), filepath.Join(dir, asideDir)
	for _, from := range []string{data, aside} {
		switch _, err := os.Lstat(filepath.Join(from, "member", "wal")); {
		case err == nil:
			return from, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", fmt.Errorf("%s has no store", dir)
}

// Recover makes a new store of the data of the stopped member in config.Dir, with this member alone. What only the others had
// confirmed is missing from it, so it counts as one that was unpacked from a backup: the next Start finds it, and UnpackedFrom says
// name. What the member had stays beside it. It may be called again after a crash. Errors: ErrLocked.
func Recover(ctx context.Context, config Config, name string) (st BackupStatus, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("recover the store in %s: %w", config.Dir, err)
		}
	}()
	lock, err := lockDir(config.Dir)
	if err != nil {
		return st, err
	}
	defer lock.Close()
	from, err := recoverable(config.Dir)
	if err != nil {
		return st, err
	}
	work := filepath.Join(config.Dir, recoverDir)
	if err := os.RemoveAll(work); err != nil {
		return st, err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return st, err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(filepath.Join(work, dataDir), os.DirFS(from)); err != nil {
		return st, err
	}
	file := filepath.Join(work, "snapshot")
	if err := alone(ctx, config, work, file); err != nil {
		return st, err
	}
	if st, err = Check(file, nil); err != nil {
		return st, err
	}
	aside := filepath.Join(config.Dir, asideDir)
	if from != aside {
		if err := os.RemoveAll(aside); err != nil {
			return st, err
		}
		if err := os.Rename(from, aside); err != nil {
			return st, err
		}
		if err := durable.SyncDir(config.Dir); err != nil {
			return st, err
		}
	}
	return st, place(file, config.Dir, name)
}

// alone runs the copy of a member in work without the others, which applies all that it knows to be confirmed, and writes a
// backup of that to file.
func alone(ctx context.Context, config Config, work, file string) error {
	config.Dir, config.Peers, config.Socket = work, nil, ""
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	cfg := config.etcd(newLogs(config.Logger))
	cfg.ForceNewCluster = true
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	s, err := etcdstore.New(etcdstore.Config{Client: v3client.New(etcd.Server)})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(s.Backup(ctx, f), f.Close(), s.Close())
}
