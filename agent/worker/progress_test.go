package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// giver is a host on which it takes a while to give a volume to a group.
type giver struct {
	*fakert.Host
	files int
	step  time.Duration
	asked []string
}

func (g *giver) Ensure(ctx context.Context, id spec.Identity, v records.MemberVolume, fresh bool, group *runtime.Group) (string, error) {
	if group == nil {
		g.asked = append(g.asked, "no group")
		return g.Host.Ensure(ctx, id, v, fresh, group)
	}
	g.asked = append(g.asked, fmt.Sprintf("%d whole=%v", group.ID, group.Whole))
	group.Progress.Begin("/volumes/data")
	for range g.files {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(g.step):
			group.Progress.Add()
		}
	}
	return g.Host.Ensure(ctx, id, v, fresh, group)
}

func grouped(policy string) func(*records.Life) {
	return func(l *records.Life) {
		g := int64(4711)
		l.Template.Spec.SecurityContext = &spec.MemberSecurityContext{FSGroup: &g}
		if policy != "" {
			l.Template.Spec.SecurityContext.FSGroupChangePolicy = &policy
		}
	}
}

// TestVolumesAreGivenAsTheirPolicySays: Always, which is the default, once in a life, also when its container
// starts again after the agent; of the next life again.
func TestVolumesAreGivenAsTheirPolicySays(t *testing.T) {
	for policy, want := range map[string]string{
		"":               "4711 whole=true, 4711 whole=false, 4711 whole=true",
		"Always":         "4711 whole=true, 4711 whole=false, 4711 whole=true",
		"OnRootMismatch": "4711 whole=false, 4711 whole=false, 4711 whole=false",
	} {
		t.Run(policy, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				host := &giver{Host: n.host}
				n.change = func(c *Config) { c.Volumes = host }
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), grouped(policy)))
				n.wantReady()
				n.kill()
				n.host.Exit(cid, runtime.Exit{})
				n.run()
				n.wantReady()
				n.wantStarts(tok(5), 2)
				n.w.Tell(with(life(5, records.GoalStop), grouped(policy)))
				n.wantStopped(tok(5))
				n.w.Tell(with(life(6, records.GoalRun), grouped(policy)))
				n.wantReady()
				if got := strings.Join(host.asked, ", "); got != want {
					t.Errorf("asked for %s\nwant      %s", got, want)
				}
			})
		})
	}
}

// TestALargeVolumeIsGivenHoweverLongItTakes: it is reported now and then, and does not count as a failure.
func TestALargeVolumeIsGivenHoweverLongItTakes(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.change = func(c *Config) { c.Volumes = &giver{Host: n.host, files: 600, step: time.Second} }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), grouped("")))
		time.Sleep(11 * time.Second)
		n.wantCause(causes.VolumeGroup, "giving /volumes/data to the group of fsGroup: ")
		time.Sleep(10 * time.Minute)
		n.wantReady()
		said := 0
		for _, r := range n.all() {
			switch r.Cause {
			case causes.VolumeGroup:
				said++
			case causes.VolumeRefused:
				t.Errorf("failed: %s", r.Message)
			}
		}
		if said < 9 || said > 11 {
			t.Errorf("reported %d times in ten minutes", said)
		}
	})
}

// TestAStopDoesNotWaitUntilAVolumeIsGiven: and the next life begins with the whole of it.
func TestAStopDoesNotWaitUntilAVolumeIsGiven(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		host := &giver{Host: n.host, files: 1 << 20, step: time.Second}
		n.change = func(c *Config) { c.Volumes = host }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), grouped("")))
		time.Sleep(time.Minute)
		n.w.Tell(with(life(5, records.GoalStop), grouped("")))
		n.wantStopped(tok(5))
		host.files = 1
		n.w.Tell(with(life(6, records.GoalRun), grouped("")))
		time.Sleep(10 * time.Second)
		n.wantReady()
		if got := strings.Join(host.asked, ", "); got != "4711 whole=true, 4711 whole=true" {
			t.Errorf("asked for %s", got)
		}
	})
}
