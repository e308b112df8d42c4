package box

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// standing are the volumes in their places, by member.
func (c *cluster) standing() map[string]records.VolumeID {
	c.t.Helper()
	out := map[string]records.VolumeID{}
	for _, n := range c.nodes {
		for _, id := range n.host.Volumes() {
			for _, v := range c.volumes("db") {
				if v.UID == id {
					out[v.ID.MemberName()] = id
				}
			}
		}
	}
	return out
}

// stand is how many volumes stand in their places on all hosts, known or not.
func (c *cluster) stand() (n int) {
	for _, node := range c.nodes {
		n += len(node.host.Volumes())
	}
	return n
}

// trashed is how many volumes lie in the trash on all hosts.
func (c *cluster) trashed() (n int) {
	c.t.Helper()
	for _, node := range c.nodes {
		found, err := node.host.Trash(c.t.Context())
		if err != nil {
			continue // its agent is down
		}
		n += len(found)
	}
	return n
}

// held reports whether the store has an address of a member that does not rest.
func (c *cluster) held(name string) bool {
	c.t.Helper()
	_, kvs, err := c.store.Snapshot(c.t.Context(), store.KindAddress+"/")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, kv := range kvs {
		a, err := store.Decode[records.AddressRecord](kv)
		if err == nil && a.ID == member(name) && a.FreedAt == nil {
			return true
		}
	}
	return false
}

func TestVolumesStayOrGoByThePolicy(t *testing.T) {
	for _, scaled := range []spec.Retention{spec.Retain, spec.Delete} {
		for _, deleted := range []spec.Retention{spec.Retain, spec.Delete} {
			t.Run(fmt.Sprintf("%s when scaled, %s when deleted", scaled, deleted), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					c := newCluster(t, inMemory(t), "a", "b")
					set := shape{name: "db", replicas: 3, volumes: true, scaled: scaled, deleted: deleted, trash: "0s"}
					c.apply(set)
					c.ready("db", 3)
					before := c.standing()
					if len(before) != 3 {
						t.Fatalf("volumes %v; want three", before)
					}
					c.scale("db", 1)
					c.ready("db", 1)
					left := 3
					if scaled == spec.Delete {
						left = 1
					}
					c.until("the volumes of the scale down are as the policy says", func() bool {
						return len(c.volumes("db")) == left && c.stand() == left && c.trashed() == 0
					})
					c.until("db-2 holds an address or not, as it holds a volume", func() bool { return c.held("db-2") == (scaled == spec.Retain) })
					c.scale("db", 2)
					c.ready("db", 2)
					after := c.standing()
					if same := after["db-1"] == before["db-1"]; same != (scaled == spec.Retain) || after["db-0"] != before["db-0"] {
						t.Errorf("volumes %v, before %v", after, before)
					}
					c.delete("db")
					c.gone("db")
					left = 3
					if deleted == spec.Delete {
						left = 0
					} else if scaled == spec.Delete {
						left = 2
					}
					c.until("the volumes of the deletion are as the policy says", func() bool {
						return len(c.volumes("db")) == left && c.stand() == left && c.trashed() == 0
					})
					c.until("db-0 holds an address or not, as it holds a volume", func() bool { return c.held("db-0") == (deleted == spec.Retain) })
				})
			})
		}
	}
}

// What stands in another's place is never touched, and is told; the member waits.
func TestAVolumeThatIsNotTheOneIsNotGivenUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a")
		c.apply(shape{name: "db", replicas: 2, volumes: true, scaled: spec.Delete, deleted: spec.Retain, trash: "1h"})
		c.ready("db", 2)
		host, was := c.nodes["a"].host, c.standing()["db-1"]
		c.scale("db", 1)
		c.until("it lies in the trash and is shown there", func() bool {
			return slices.ContainsFunc(c.volumes("db"), func(v records.Volume) bool { return v.UID == was && v.Fate == records.FateTrashed })
		})
		c.scale("db", 2)
		c.ready("db", 2)
		next := c.standing()["db-1"]
		if next == was || next == "" {
			t.Fatalf("db-1 has the volume %q, had %s; want another", next, was)
		}
		fact := filepath.Join(c.nodes["a"].root, "run/boot-1/members/default/db-1/volume-new")
		if got, err := os.ReadFile(fact); err != nil || string(got) != "data replaced\n" {
			t.Errorf("volume-new says %q, error %v", got, err)
		}
		host.PutVolume(member("db-1"), "data", "anothers")
		c.scale("db", 1)
		c.until("the refusal is told", func() bool {
			return strings.Contains(c.explain("db"), "refuses") && slices.ContainsFunc(c.volumes("db"), func(v records.Volume) bool {
				return v.UID == next && v.Fate == records.FateReclaiming
			})
		})
		c.scale("db", 2)
		c.until("the member waits and says why", func() bool { return strings.Contains(c.find("db-1").Blocked, "refuses") })
		if !slices.Contains(host.Volumes(), "anothers") {
			t.Error("what is another's was touched")
		}
		host.PutVolume(member("db-1"), "data", next)
		c.ready("db", 2)
		if got := c.standing()["db-1"]; got == next || got == "" {
			t.Errorf("db-1 has the volume %q, had %s; want another", got, next)
		}
	})
}

// letGo notes whose volume may go from now on.
func (s *script) letGo() {
	for name := range s.volumes {
		out := member(name).Ordinal >= s.set.replicas
		switch {
		case s.there && out && s.set.scaled == spec.Delete,
			!s.there && (s.set.deleted == spec.Delete || out && s.set.scaled == spec.Delete):
			s.mayGo[name] = true
		}
	}
}

// tidy: what was given up is gone, and all that stands is known.
func (s *script) tidy() bool {
	if s.trashed() > 0 {
		return false
	}
	known := map[records.VolumeID]bool{}
	for _, v := range s.cluster.volumes("db") {
		known[v.UID] = v.Fate == records.FateKeep
	}
	for _, n := range s.nodes {
		for _, id := range n.host.Volumes() {
			if !known[id] {
				return false
			}
		}
	}
	return true
}

// By hand a kept volume goes and comes back, and a lost one is replaced, whoever leads and
// whenever agents and servers die.
func TestVolumesAreLookedAfterByHand(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a")
		c.apply(shape{name: "db", replicas: 2, volumes: true, trash: "1h"})
		c.ready("db", 2)
		host, was := c.nodes["a"].host, c.standing()["db-1"]
		fate := func(id records.VolumeID) (fate records.VolumeFate) {
			for _, v := range c.volumes("db") {
				if v.UID == id {
					fate = v.Fate
				}
			}
			return fate
		}
		reclaim := func(what, name string, lost bool, fine ...codes.Code) {
			t.Helper()
			c.must(what, func(ctx context.Context, api proto.ControlClient) error {
				_, err := api.ReclaimVolume(ctx, &proto.ReclaimVolumeRequest{Name: name, Lost: lost})
				return err
			}, fine...)
		}
		c.scale("db", 1)
		c.ready("db", 1)
		c.crashServerAt(2, true)
		reclaim("give up", string(was), false)
		c.until("it lies in the trash", func() bool { return fate(was) == records.FateTrashed && c.stand() == 1 && c.trashed() == 1 })
		c.nodes["a"].restart()
		c.must("bring back", func(ctx context.Context, api proto.ControlClient) error {
			_, err := api.RestoreVolume(ctx, &proto.RestoreVolumeRequest{Name: string(was)})
			return err
		})
		c.until("it is back", func() bool { return fate(was) == records.FateKeep && c.stand() == 2 && c.trashed() == 0 })
		c.scale("db", 2)
		c.ready("db", 2)
		if got := c.standing()["db-1"]; got != was {
			t.Fatalf("db-1 has the volume %s; want %s, which came back", got, was)
		}

		c.until("it is noted that it was ready on it", func() bool {
			_, kvs, err := c.store.Get(c.t.Context(), store.IdentityKey(member("db-1")))
			if err != nil {
				return false
			}
			rec, err := store.Decode[records.IdentityRecord](kvs[store.IdentityKey(member("db-1"))])
			return err == nil && rec.VolumeReady["data"] > 0
		})
		host.DropVolumes(member("db-1"), "data")
		c.must("restart", func(ctx context.Context, api proto.ControlClient) error {
			_, err := api.Restart(ctx, &proto.RestartRequest{Member: "db-1"})
			return err
		})
		c.until("it misses its volume", func() bool { return c.find("db-1").Cause == causes.VolumeMissing })
		c.nodes["a"].restart()
		c.until("it still does", func() bool { return c.find("db-1").Cause == causes.VolumeMissing })
		reclaim("take as lost", "data-db-1", true)
		c.ready("db", 2)
		next := c.standing()["db-1"]
		if next == was || next == "" {
			t.Errorf("db-1 has the volume %q, had %s; want another", next, was)
		}
		fact := filepath.Join(c.nodes["a"].root, "run/boot-1/members/default/db-1/volume-new")
		if got, err := os.ReadFile(fact); err != nil || string(got) != "data replaced\n" {
			t.Errorf("volume-new says %q, error %v", got, err)
		}
		reclaim("what is there", "data-db-1", true, codes.FailedPrecondition)
		c.throughout(time.Second, "it stays", func() bool { return c.standing()["db-1"] == next })
	})
}
