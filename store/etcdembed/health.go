package etcdembed

import (
	"errors"
	"expvar"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/raft/v3"

	"github.com/stead-project/stead/records/stores"
)

// Health is how this member is.
func (e *Embedded) Health() stores.StoreHealth {
	s := e.etcd.Server
	h := stores.StoreHealth{Term: s.Term(), Index: s.AppliedIndex(), Bytes: s.Backend().Size(), UsedBytes: s.Backend().SizeInUse()}
	for _, a := range s.Alarms() {
		h.Alarms = append(h.Alarms, a.Alarm.String())
	}
	h.Aside, _ = e.aside() // it is there to be told of
	return h
}

// Acked is what the member id has acknowledged to this one, in the term in which this one leads; zero: nothing, or this one does not
// lead. It is on the other's disk.
func (e *Embedded) Acked(id string) stores.Mark {
	member, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return stores.Mark{}
	}
	told, ok := expvar.Get("raft.status").(expvar.Func) // etcd tells it nowhere else; of the member that this process started last
	if !ok {
		return stores.Mark{}
	}
	st, ok := told.Value().(raft.Status)
	if !ok || st.ID != uint64(e.etcd.Server.MemberID()) || st.RaftState != raft.StateLeader || st.Progress[member].Match == 0 {
		return stores.Mark{}
	}
	return stores.Mark{Term: st.GetTerm(), Index: st.Progress[member].Match}
}

// aside is what Recover has left.
func (e *Embedded) aside() (a stores.Aside, err error) {
	dir := filepath.Join(e.config.Dir, asideDir)
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return err
		case path == dir:
			a.At = info.ModTime()
		case info.Mode().IsRegular():
			a.Bytes += info.Size()
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return a, err
}
