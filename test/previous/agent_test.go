package previous

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// taken is a copy of what the previous agent left.
func taken(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An agent of this release takes over root and running lives: the same node, the same open tokens, the same volumes.
func TestAnAgentTakesOverWhatThePreviousOneLeft(t *testing.T) {
	dir := taken(t)
	root := filepath.Join(dir, "agent")
	look(t, func(v cache.View) {
		node := v.Nodes()[0]
		h, err := home.Open(root, node.Node.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if h.UID() != node.Node.UID || h.Cluster() != v.ClusterID() || h.Newest().Epoch != v.Epoch() {
			t.Errorf("the node is %s of %s at %v; the store has %s", h.UID(), h.Cluster(), h.Newest(), node.Node.UID)
		}
		l, err := ledger.Open(h.LedgerPath(), node.Facts.Boot)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		open := 0
		host := worker.OnHost(root, filepath.Join(dir, "run"))
		volumes, err := volume.New(volume.Config{Root: root, RunDir: filepath.Join(dir, "run"), ClusterID: h.Cluster(), Node: h.Name(), Boot: node.Facts.Boot})
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range v.Sets() {
			for _, slot := range v.World(ref).Slots {
				open++
				m := slot.Member
				if got := l.Look(slot.ID); got.Open != m.Token {
					t.Errorf("%s: the ledger has %+v open; it runs with token %s", slot.ID, got, m.Token)
				}
				life, ok := host.LoadLife(slot.ID)
				if !ok || life.Member.Token != m.Token || life.Member.Revision != m.Revision {
					t.Errorf("%s: the life that is kept is %+v, %v", slot.ID, life.Member, ok)
				}
				for _, vol := range m.Volumes {
					users, err := volumes.Users(t.Context(), vol.ID)
					if claim := vol.Claim == "shared"; err != nil || claim != (len(users) > 0) {
						t.Errorf("volume %s of %s has users %v, %v", vol.Claim, slot.ID, users, err)
					}
				}
			}
		}
		if got := len(l.Entries()); got != open {
			t.Errorf("the ledger has %d entries of %d members", got, open)
		}
		if trash, err := volumes.Trash(t.Context()); err != nil || len(trash) > 0 {
			t.Errorf("in the trash are %v, %v", trash, err)
		}
		guarded := spec.Identity{Namespace: "default", Set: "guarded", Ordinal: 0}
		lives, err := watchdog.Dir(filepath.Join(dir, "run", "guard")).Records()
		if r := lives["default.guarded-0"]; err != nil || len(lives) != 1 || r.Token != v.Member(guarded).Token.String() {
			t.Errorf("guarded are %+v, %v", lives, err)
		}
	})
}
