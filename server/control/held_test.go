package control

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

func TestWhileTheStoreIsHeldNothingIsAskedOfIt(t *testing.T) {
	r := newRig(t)
	r.mustApply(filesYAML, setYAML)
	r.live(0, true)
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	unused := spec.Identity{Namespace: "default", Set: "db", Ordinal: 9}
	r.left(unused, "data", "v9")
	r.Record(store.HoldKey, records.Hold{Cause: "it is at revision 7, and revision 9 is known", By: "node n1", At: time.Now()})
	if err := r.Cache.Wait(r.ctx, r.rev()); err != nil {
		t.Fatal(err)
	}
	before := r.rev()
	for name, ask := range map[string]func() error{
		"apply": func() error {
			_, err := r.apply(strings.Replace(setYAML, "{name: db}", "{name: kv}", 1))
			return err
		},
		"scale": func() error {
			_, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 5})
			return err
		},
		"rollout restart": func() error {
			_, err := r.api.Restart(r.ctx, &proto.RestartRequest{Set: "db"})
			return err
		},
		"restart of a member": func() error {
			_, err := r.api.Restart(r.ctx, &proto.RestartRequest{Member: "db-0"})
			return err
		},
		"delete": func() error {
			_, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db"})
			return err
		},
		"delete of an object": func() error {
			_, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "configmap", Name: "conf"})
			return err
		},
		"volume reclaim": func() error {
			_, err := r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "data-db-9"})
			return err
		},
		"cordon": func() error {
			yes := true
			_, err := r.api.EditNode(r.ctx, &proto.EditNodeRequest{Name: "n1", Cordon: &yes})
			return err
		},
		"node fence": func() error {
			_, err := r.api.FenceNode(r.ctx, &proto.FenceNodeRequest{Name: "n1", PoweredOff: true})
			return err
		},
		"node remove": func() error {
			_, err := r.api.RemoveNode(r.ctx, &proto.RemoveNodeRequest{Name: "n1"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, ask(), codes.FailedPrecondition,
				"node n1 says that the store went back: it is at revision 7, and revision 9 is known", "stead restore", "running members are not affected")
		})
	}
	if after := r.rev(); after != before {
		t.Errorf("the store went from revision %d to %d; something was written", before, after)
	}
}
