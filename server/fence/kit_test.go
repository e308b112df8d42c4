package fence

import (
	"log/slog"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// rig is a store in memory, of epoch 1, and its mirror.
type rig struct {
	t *testing.T
	*servertest.Mirrored
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, Mirrored: servertest.Mirror(t, slog.New(slog.DiscardHandler), store.Put(store.EpochKey, []byte("1")))}
}

func ident(ordinal int) spec.Identity {
	return spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
}

func testMember(ordinal int, tok int64, node spec.NodeName, uid spec.UID) records.Member {
	return records.Member{
		ID: ident(ordinal), SetUID: "u1", Token: token(tok), Goal: records.GoalRun, Revision: "r1",
		Node: node, NodeUID: uid, Boot: "b1",
	}
}
