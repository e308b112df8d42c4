package box

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// written applies the set db as s has it, with another image and more fields of its spec.
func (c *cluster) written(s shape, tag int, fields ...string) {
	c.t.Helper()
	text := strings.NewReplacer("apps/v1", "stead/v1", image, fmt.Sprintf("example.local/db:%d", tag),
		"spec:\n  replicas", "spec:\n  "+strings.Join(append(fields, "replicas"), "\n  ")).Replace(s.yaml())
	c.must("apply "+s.name, func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Apply(ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(text)}}})
		return err
	})
}

// on reports whether all members of db are ready on one revision, other than these.
func (c *cluster) on(n int, others ...spec.RevisionHash) bool {
	st := c.sets()["db"]
	if st.AvailableReplicas != n || st.UpdatedAvailableReplicas != n || st.CurrentRevision != st.UpdateRevision || st.TerminatingReplicas != 0 {
		return false
	}
	for _, h := range others {
		if st.CurrentRevision == h {
			return false
		}
	}
	return true
}

// An update whose image nobody has stands still, is given up and goes back, though the
// server dies in between; members it did not reach keep their lives. Another template
// is then tried. With Recreate all go down before one comes up.
func TestAStalledUpdateGoesBackAndTheNextIsTried(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		for _, n := range c.nodes {
			n.host.OnPull(func(ref, _ string) error {
				if strings.HasSuffix(ref, ":2") {
					return runtime.ErrImageMissing
				}
				return nil
			})
		}
		db := shape{name: "db", replicas: 3}
		cautious := []string{"progressDeadlineSeconds: 1", "updateStrategy: {rollingUpdate: {onFailure: Rollback}}"}
		c.written(db, 1, cautious...)
		c.until("the first revision is complete", func() bool { return c.on(3) })
		first, low := c.sets()["db"].CurrentRevision, c.find("db-0").Token

		c.written(db, 2, cautious...)
		c.until("the update is given up", func() bool { return c.sets()["db"].RolledBackFrom != "" })
		c.current().crash()
		c.startServer()
		c.until("all are back", func() bool {
			st := c.sets()["db"]
			return st.AvailableReplicas == 3 && st.CurrentReplicas == 3 && st.CurrentRevision == first && st.UpdateRevision != first
		})
		if got := c.find("db-0").Token; got != low {
			t.Errorf("db-0 has the life %s after %s, though the update did not reach it", got, low)
		}

		c.written(db, 3) // no deadline that a slow machine could miss
		c.until("another template completes", func() bool { return c.on(3, first) && c.sets()["db"].RolledBackFrom == "" })
		third := c.sets()["db"].CurrentRevision

		c.written(db, 4, "updateStrategy: {type: Recreate}")
		c.until("all are made anew", func() bool { return c.on(3, first, third) })
	})
}
