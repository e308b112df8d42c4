package box

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
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
	c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is silent") })
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
}

// TestAMemberWithAVolumeWaitsForItsFencedHost: its disk is there and nowhere else.
func TestAMemberWithAVolumeWaitsForItsFencedHost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory(t), "a", "b")
	c.apply(shape{name: "db", replicas: 2, volumes: true})
	c.ready("db", 2)
	lost, before, volumes := c.host("db-1"), c.find("db-1"), fmt.Sprint(c.volumes("db"))
	lost.reboot()
	c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is silent") })
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
}

// TestAHostThatWasNotOffAfterAll: the word was wrong, and the member began elsewhere. The
// first life is ended as soon as its host is heard of again, and never begins anew.
func TestAHostThatWasNotOffAfterAll(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory(t), "a", "b")
	c.audit.misled = member("db-1")
	c.apply(shape{name: "db", replicas: 2})
	c.ready("db", 2)
	lost, before := c.host("db-1"), c.find("db-1")
	lost.crash() // its members run on
	c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is silent") })
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
}
