package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
)

// short is the condition that the node reported last, and how many of its reports came outside of hellos.
func (n *node) short() (said string, times int) {
	n.t.Helper()
	synctest.Wait()
	n.script.with(func() {
		facts := records.NodeFacts{Conditions: n.script.conditions}
		said, times = facts.ShortOf(), n.script.conditionsSaid
	})
	return said, times
}

// What the host is short of goes with the hello, and is said again when it changes, not with each figure.
func TestWhatTheHostIsShortOfIsSaid(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		want := func(said string, times int) {
			t.Helper()
			if got, often := n.short(); got != said || often != times {
				t.Errorf("said %q, %d times; want %q, %d times", got, often, said, times)
			}
		}
		want("", 0)
		disk := records.NodeCondition{Type: records.DiskPressure, Message: "1Gi free"}
		n.agent.SetConditions([]records.NodeCondition{disk})
		want("DiskPressure", 1)
		if n.metrics()["stead_agent_condition  DiskPressure"] != 1 {
			t.Errorf("metrics: %v", n.metrics())
		}
		disk.Message = "2Gi free"
		n.agent.SetConditions([]records.NodeCondition{disk})
		want("DiskPressure", 1)
		n.script.down()
		n.script.up()
		time.Sleep(10 * time.Second)
		n.script.with(func() {
			if len(n.script.hellos) < 2 {
				t.Errorf("%d hellos", len(n.script.hellos))
			}
		})
		want("DiskPressure", 1)
		n.agent.SetConditions(nil)
		want("", 2)
	})
}
