package etcdembed

import (
	"fmt"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/records/stores"
)

// Mark reads from the log of the stopped member in dir its id, and how far it had come.
func Mark(dir string) (member string, m stores.Mark, err error) {
	at := filepath.Join(dir, dataDir, "member", "wal")
	fail := func(err error) (string, stores.Mark, error) {
		return "", m, fmt.Errorf("read the log of the store in %s: %w", dir, err)
	}
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), at)
	if err != nil {
		return fail(err)
	}
	from := &walpb.Snapshot{}
	if n := len(snapshots); n > 0 {
		from = snapshots[n-1]
	}
	w, err := wal.OpenForRead(zap.NewNop(), at, from)
	if err != nil {
		return fail(err)
	}
	defer w.Close()
	metadata, state, entries, err := w.ReadAll()
	if err != nil {
		return fail(err)
	}
	var about etcdserverpb.Metadata
	if err := proto.Unmarshal(metadata, &about); err != nil {
		return fail(err)
	}
	m = stores.Mark{Term: state.GetTerm(), Index: from.GetIndex()}
	if n := len(entries); n > 0 {
		m.Index = entries[n-1].GetIndex()
	}
	return strconv.FormatUint(about.GetNodeID(), 16), m, nil
}
