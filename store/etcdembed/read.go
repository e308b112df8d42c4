package etcdembed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdstore"
)

// openTime bounds how long a file that another process writes is waited for.
const openTime = 5 * time.Second

// errDamaged: the pages of a file are not those of a store.
var errDamaged = errors.New("it is damaged: it is not a store that can be read")

// Read opens a backup (see Check) as a store that is only read, goes through all that is in it, and calls each
// with every key of ours that it holds, newest first; each may be nil. An error of each ends it. It needs
// memory for the names of the keys and one record. A file that is damaged, or whose disk fails meanwhile, is an
// error.
func Read(file string, each func(store.KV) error) (st BackupStatus, err error) {
	if each == nil {
		each = func(store.KV) error { return nil }
	}
	// The file is mapped: what cannot be read of it is a fault, which would end the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("read backup %s: %w (%v)", file, errDamaged, cause)
		}
	}()
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true, Timeout: openTime, OpenFile: openThere})
	if err != nil {
		return st, fmt.Errorf("read backup %s: %w: %w", file, errDamaged, err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		st.Bytes = tx.Size()
		err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error { // what is not ours is read, too
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
		keys := tx.Bucket([]byte("key"))
		switch {
		case err != nil:
			return err
		case keys == nil:
			return errDamaged
		}
		return st.readKeys(keys, each)
	})
	if err != nil {
		return st, fmt.Errorf("read backup %s: %w", file, err)
	}
	return st, nil
}

// openThere opens a file, which is never made.
func openThere(path string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag&^os.O_CREATE, mode)
}

// readKeys goes through the versions of all keys, from the newest: the first that is met of a key is what it is.
func (st *BackupStatus) readKeys(versions *bbolt.Bucket, each func(store.KV) error) error {
	seen := map[string]bool{}
	cursor := versions.Cursor()
	for at, value := cursor.Last(); at != nil; at, value = cursor.Prev() {
		rev := mvcc.BytesToRev(at)
		st.Rev = max(st.Rev, rev.Main)
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(value, &kv); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		key := string(kv.GetKey())
		if seen[key] {
			continue
		}
		seen[key] = true
		if mvcc.IsTombstone(at) {
			continue
		}
		st.Keys++
		ours, ok := strings.CutPrefix(key, etcdstore.DefaultPrefix)
		if !ok {
			continue
		}
		err := each(store.KV{
			Key: ours, Value: bytes.Clone(kv.GetValue()), Lease: store.LeaseID(kv.GetLease()),
			Create: store.Rev(kv.GetCreateRevision()), Mod: store.Rev(kv.GetModRevision()),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
