package box

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// fence says of a node that it was powered off, or what stands against it.
func (c *cluster) fence(node spec.NodeName) error {
	return c.ask(func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.FenceNode(ctx, &proto.FenceNodeRequest{Name: string(node), PoweredOff: true})
		return err
	})
}

func (c *cluster) removeNode(node spec.NodeName) error {
	return c.ask(func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.RemoveNode(ctx, &proto.RemoveNodeRequest{Name: string(node)})
		return err
	})
}

// refused fails the test unless err says why.
func refused(t *testing.T, err error, why string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v; want %q", err, why)
	}
}

// TestAMemberOfAFencedHostBeginsElsewhere: once, with its address, and not before
// somebody says that the host is off. When it returns nothing of it is left.
func TestAMemberOfAFencedHostBeginsElsewhere(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.apply(shape{name: "db", replicas: 2})
		c.ready("db", 2)
		lost, before := c.host("db-1"), c.find("db-1")
		// That it cannot be fenced either is a test of dispatch: here its session may have
		// lapsed for a moment, and the word would be taken.
		c.until("a node that is on is not removed", func() bool {
			err := c.removeNode(lost.name)
			return err != nil && strings.Contains(err.Error(), "it is on")
		})
		lost.reboot()
		c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is unreachable") })
		refused(t, c.removeNode(lost.name), "if it is off: stead node fence")
		c.throughout(ttl, "silence is no proof", func() bool { return c.find("db-1").Token == before.Token })

		if err := c.fence(lost.name); err != nil {
			t.Fatal(err)
		}
		c.ready("db", 2)
		after := c.find("db-1")
		if after.Token == before.Token || after.Node == before.Node || after.Address != before.Address {
			t.Errorf("db-1 is %+v, was %+v; want another life elsewhere with its address", after, before)
		}
		lost.start()
		c.until("the host is back", func() bool { return c.live() == 2 })
		c.ready("db", 2)
		if now := c.find("db-1"); now.Token != after.Token || len(c.audit.starts()) != 3 {
			t.Errorf("db-1 is %+v after %d starts; want %+v after 3", now, len(c.audit.starts()), after)
		}
		lost.reboot()
		c.until("the host is silent", func() bool { return c.live() == 1 })
		if err := c.removeNode(lost.name); err != nil {
			t.Error(err)
		}
		refused(t, c.removeNode(lost.name), "there is no node")
	})
}

// TestAMemberWithAVolumeWaitsForItsFencedHost: its disk is there and nowhere else.
func TestAMemberWithAVolumeWaitsForItsFencedHost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.apply(shape{name: "db", replicas: 2, volumes: true})
		c.ready("db", 2)
		lost, before, volumes := c.host("db-1"), c.find("db-1"), fmt.Sprint(c.volumes("db"))
		lost.reboot()
		c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is unreachable") })
		if err := c.fence(lost.name); err != nil {
			t.Fatal(err)
		}
		c.until("it waits for its volume", func() bool { return strings.Contains(c.find("db-1").Blocked, "its volumes are on node") })
		refused(t, c.removeNode(lost.name), "such as")
		lost.start()
		c.ready("db", 2)
		if now := c.find("db-1"); now.Node != before.Node || now.Token == before.Token || fmt.Sprint(c.volumes("db")) != volumes {
			t.Errorf("db-1 is %+v, was %+v; want another life on its own volume", now, before)
		}
	})
}

// TestAHostThatWasNotOffAfterAll: the word was wrong, and the member began elsewhere. The
// first life is ended as soon as its host is heard of again, and never begins anew.
func TestAHostThatWasNotOffAfterAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.audit.misled = member("db-1")
		c.apply(shape{name: "db", replicas: 2})
		c.ready("db", 2)
		lost, before := c.host("db-1"), c.find("db-1")
		lost.crash() // its members run on
		c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is unreachable") })
		if err := c.fence(lost.name); err != nil {
			t.Fatal(err)
		}
		c.ready("db", 2)
		after := c.find("db-1")
		lost.start()
		c.until("one life is left", func() bool {
			return c.live() == 2 && len(c.audit.running(member("db-1"))) == 1 && c.find("db-1").Ready
		})
		if now := c.find("db-1"); now.Token != after.Token || now.Token == before.Token {
			t.Errorf("db-1 is %+v; want %+v", now, after)
		}
	})
}

// TestAVolumeLostWithItsHost: only when a person says both, that the host is off and that
// the volume is lost, does the member begin elsewhere with a new one. Should the host
// return, what stands there goes to its trash, and out of it by hand only.
func TestAVolumeLostWithItsHost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.apply(shape{name: "db", replicas: 2, volumes: true})
		c.ready("db", 2)
		lost, before := c.host("db-1"), c.find("db-1")
		volume := c.volumeOf("db-1")
		lose := func() error {
			return c.ask(func(ctx context.Context, api proto.ControlClient) error {
				_, err := api.ReclaimVolume(ctx, &proto.ReclaimVolumeRequest{Name: string(volume.UID), Lost: true})
				return err
			})
		}
		lost.reboot()
		c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is unreachable") })
		refused(t, lose(), "if the node is off for good, fence it first: stead node fence")
		if err := c.fence(lost.name); err != nil {
			t.Fatal(err)
		}
		c.until("it waits for its volume", func() bool { return strings.Contains(c.find("db-1").Blocked, "its volumes are on node") })
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		c.ready("db", 2)
		after, next := c.find("db-1"), c.volumeOf("db-1")
		if after.Node == before.Node || after.Address != before.Address || next.UID == volume.UID || next.Number != 2 {
			t.Errorf("db-1 is %+v on %+v, was %+v on %+v; want it elsewhere with its second volume", after, next, before, volume)
		}

		lost.start()
		c.until("what was left there is in the trash", func() bool { return c.live() == 2 && c.trashed() == 1 && c.stand() == 2 })
		if now := c.find("db-1"); now.Token != after.Token || c.volumeOf("db-1").UID != next.UID {
			t.Errorf("db-1 is %+v, was %+v", now, after)
		}
		c.until("the trash is told", func() bool {
			return c.ask(func(ctx context.Context, api proto.ControlClient) error {
				_, err := api.RestoreVolume(ctx, &proto.RestoreVolumeRequest{Name: string(volume.UID)})
				if status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "has another volume") {
					return nil
				}
				return fmt.Errorf("restore said %w", err)
			}) == nil
		})
		lost.reboot()
		c.until("the host is silent", func() bool { return c.live() == 1 })
		if err := c.removeNode(lost.name); err != nil {
			t.Error(err)
		}
	})
}

// TestAFenceEndsWithTheHostsReturn: what it proved was true of then, and a volume that is
// said to be lost now is looked for by its host.
func TestAFenceEndsWithTheHostsReturn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.apply(shape{name: "db", replicas: 2, volumes: true})
		c.ready("db", 2)
		lost, volume := c.host("db-1"), c.volumeOf("db-1")
		lost.reboot()
		c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is unreachable") })
		if err := c.fence(lost.name); err != nil {
			t.Fatal(err)
		}
		lost.start()
		c.ready("db", 2)
		c.scale("db", 1)
		c.until("db-1 is gone", func() bool { return c.find("db-1").Token == "" })
		lost.reboot()
		c.until("the host is silent", func() bool { return c.live() == 1 })
		c.must("say that it is lost", func(ctx context.Context, api proto.ControlClient) error {
			_, err := api.ReclaimVolume(ctx, &proto.ReclaimVolumeRequest{Name: string(volume.UID), Lost: true})
			return err
		})
		c.until("it is looked for", func() bool { return c.volumeOf("db-1").Fate == records.FateLost })
		c.throughout(ttl, "nobody has looked", func() bool { return c.volumeOf("db-1").Fate == records.FateLost })
		lost.start()
		c.until("it was found", func() bool { return c.volumeOf("db-1").Fate == records.FateKeep })
	})
}

// volumeOf is the volume of a member of db; zero: it has none.
func (c *cluster) volumeOf(name string) (found records.Volume) {
	for _, v := range c.volumes("db") {
		if v.ID == member(name) && v.Fate != records.FateTrashed {
			found = v
		}
	}
	return found
}
