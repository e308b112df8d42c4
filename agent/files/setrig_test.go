package files

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// setRig is what a node knows of a set, and the members that follow it on a clock of its own.
type setRig struct {
	t     *testing.T
	dir   string
	now   time.Time
	until time.Duration
	// unanswered: no server has answered the agent yet.
	unanswered bool
	known      records.Snapshot // of revision 0: nothing
	history    []records.Change
	disk       *countedDisk
	sets       *SetFiles
}

// countedDisk counts what is written and linked, and fails when it is to.
type countedDisk struct {
	SetDisk
	writes, links, bytes int
	fails                error
}

func (d *countedDisk) Write(set SetKey, name string, content []byte) error {
	if d.fails != nil {
		return d.fails
	}
	d.writes++
	d.bytes += len(content)
	return d.SetDisk.Write(set, name, content)
}

func (d *countedDisk) Link(set SetKey, name string, p Place, first bool) error {
	d.links++
	return d.SetDisk.Link(set, name, p, first)
}

func newSetRig(t *testing.T) *setRig {
	r := &setRig{t: t, dir: t.TempDir(), now: time.Unix(1e9, 0)}
	r.restart()
	return r
}

// restart begins as the next agent does.
func (r *setRig) restart() {
	r.disk = &countedDisk{SetDisk: SetsOnHost(r.dir)}
	r.sets = NewSetFiles(SetFilesConfig{
		Snapshot: func(spec.SetRef) (records.Snapshot, bool) { return r.known, r.known.Sequence.Rev > 0 },
		History:  func(spec.SetRef) []records.Change { return r.history },
		Confirmed: func() time.Duration {
			if r.unanswered {
				return 0
			}
			return r.until
		},
		RunDir: r.dir, Disk: r.disk, Renew: time.Second, Now: func() time.Time { return r.now }, Logger: slog.New(slog.DiscardHandler),
	})
}

func (r *setRig) life(ordinal int) *records.Life {
	l := life()
	l.Member.ID.Ordinal = ordinal
	return l
}

func (r *setRig) place(ordinal int) Place { return At(r.dir, r.life(ordinal).Member.ID) }

// follow begins a life.
func (r *setRig) follow(ordinal int) {
	r.t.Helper()
	l := r.life(ordinal)
	must(r.t, os.MkdirAll(r.place(ordinal).Stead, 0o755))
	must(r.t, r.sets.Follow(l))
}

// moved has what changed shown.
func (r *setRig) moved() {
	r.sets.Changed(func(spec.SetRef) bool { return true })
	r.sets.ConfirmedMoved()
}

// settle lets a second pass.
func (r *setRig) settle() {
	r.sets.Turn()
	r.now = r.now.Add(time.Second)
	r.sets.Turn()
}

func (r *setRig) snapshot(epoch, rev int64, replicas int) records.Snapshot {
	p := records.Snapshot{
		Sequence: spec.Sequence{Epoch: epoch, Rev: rev}, Ref: spec.SetRef{Namespace: "prod", Name: "db"},
		Generation: 3, Replicas: replicas, InitialReplicas: 2, InitialOrdinals: []int{0, 2},
		Expected: []records.Peer{{Name: "db-1", Ordinal: 1, Volumes: records.VolumesUsed}},
	}
	for n := range replicas {
		if n != 1 {
			p.Peers = append(p.Peers, records.Peer{Name: fmt.Sprintf("db-%d", n), Ordinal: n, Address: life().Member.Address, Ready: rev%2 == 0})
		}
	}
	return p
}

func event(epoch, number int64) records.Change {
	return records.Change{Epoch: epoch, Number: number, Kind: records.ChangeReady, Member: "db-0"}
}
