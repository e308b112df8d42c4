package plan

import (
	"testing"
	"time"
)

func TestDrain(t *testing.T) {
	check(t, []rule{
		{name: "highest first, one at a time", world: "ordered 3 n1% n2 0:ready@n1 1:ready@n2 2:ready@n1",
			want: "stop=2/Drain | 2:Stopping 0:WaitingForTurn", says: "db-0: it stops for the drain of node n1 when db-2 is available; at most 1 may be down at a time"},
		{name: "the next when that one is available", world: "ordered 3 n1% n2 0:ready@n1 1:ready@n2 2:starting@n2", want: "| 2:Starting 0:WaitingForTurn"},
		{name: "it starts elsewhere, on what it ran", world: "ordered 2 n1% n2 update=h2 current=h1 0:drained@n1 1:ready@n2/h2", want: "start=0/Drain@n2 | 0:Starting"},
		{name: "one whose volume is there waits for its node", world: "ordered 2 volumes n1% n2 0:drained@n1 1:ready@n2", want: "| 0:Cordoned",
			says: "its volumes are on node n1, which is drained: it starts there after 'stead uncordon n1'"},
		{name: "after the drain it starts there again", world: "ordered 2 volumes n1 n2 0:drained@n1 1:ready@n2", want: "start=0/Drain@n1 | 0:Starting"},
		{name: "no new member starts there", world: "parallel 2 n1% n2 0:ready@n2", want: "start=1/Create@n2 | 1:Starting"},
		{name: "several nodes share the budget", world: "parallel 3 n1% n2% n3 0:ready@n1 1:ready@n2 2:ready@n3", want: "stop=1/Drain | 1:Stopping 0:WaitingForTurn"},
		{name: "as many as the budget allows", world: "parallel 4 max=2 n1% n2 0:ready@n1 1:ready@n1 2:ready@n1 3:ready@n2",
			want: "stop=2/Drain stop=1/Drain | 1:Stopping 2:Stopping 0:WaitingForTurn"},
		{name: "in order one at a time, whatever the budget", world: "ordered 3 max=2 n1% n2 0:ready@n1 1:ready@n1 2:ready@n2",
			want: "stop=1/Drain | 1:Stopping 0:WaitingForTurn"},
		{name: "a restart by hand shares it", world: "parallel 3 n1% n2 0:ready@n1 1:ready@n2 2:ready@n2", change: asked(2),
			want: "stop=2/Restart | 2:Stopping 0:WaitingForTurn"},
		{name: "an update shares it", world: "parallel 3 n1% n2 update=h2 current=h1 0:ready@n1 1:ready@n2 2:ready@n2",
			want: "stop=0/Drain | 0:Stopping 2:WaitingForTurn 1:WaitingForTurn"},
		{name: "an update under way comes first", world: "ordered 3 n1% n2 update=h2 current=h1 0:ready@n1 1:ready@n2 2:starting@n2/h2",
			want: "| 2:Starting 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "a member that waits for its node is down", world: "ordered 3 volumes n1% n2 0:ready@n1 1:ready@n2 2:drained@n1", want: "| 2:Cordoned 0:WaitingForTurn",
			says: "db-0: it stops for the drain of node n1 when db-2 is available, which waits for its node, and at most 1 may be down at a time; to stop all at once: stead drain n1 --disable-eviction"},
		{name: "the floor holds", world: "parallel 2 max=2 floor=2 n1% n2 0:ready@n1 1:ready@n2", want: "| 0:DisruptionFloor",
			says: "db-0: its stop for the drain of node n1 is held back: the disruption floor keeps 2 of 2 members available"},
		{name: "one that is down costs nothing", world: "parallel 3 n1% n2 0:running@n1 1:ready@n2 2:ready@n2", want: "stop=0/Drain | 0:Stopping"},
		{name: "no second one stops because the first is unhealthy", world: "parallel 3 n1% n2 0:running@n1 1:running@n1 2:ready@n2", want: "| 0:NotReady 1:NotReady",
			says: "db-0: it is running, but not ready; it stops for the drain of node n1 when it is available, or no more than 1 are down; to stop it now: stead restart db-0"},
		{name: "nor under the floor", world: "parallel 2 floor=2 n1% n2 0:running@n1 1:ready@n2", want: "| 0:NotReady"},
		{name: "a silent node's are left alone", world: "parallel 2 n1%~ n2 0:ready@n1 1:ready@n2", want: "| 0:NodeSilent"},
		{name: "and those of an earlier boot", world: "parallel 2 n1% n2 0:rebooted@n1 1:ready@n2", want: "| 0:NodeRebooted"},
		{name: "surplus members leave first", world: "ordered 1 n1% n2 0:ready@n1 1:ready@n2", want: "stop=1/ScaleDown | 1:Stopping 0:WaitingForTurn",
			says: "db-0: it stops for the drain of node n1 when the surplus members are gone"},
		{name: "a surplus one leaves the set, also from there", world: "ordered 1 n1% n2 0:ready@n2 1:ready@n1", want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "while the rollout is paused", world: "ordered 1 paused n1% n2 0:ready@n1", want: "stop=0/Drain | 0:Stopping"},
		{name: "under OnDelete", world: "ordered 1 OnDelete n1% n2 0:ready@n1", want: "stop=0/Drain | 0:Stopping"},
		{name: "not those of a set that nobody owns", world: "ordered 1 orphaned n1% n2 0:ready@n1", want: "|"},
		{name: "those of a deleted set stop for that", world: "ordered 1 deleting n1% n2 0:ready@n1", want: "stop=0/Delete | 0:Stopping"},
		{name: "nobody else starts beside it", world: "ordered 2 n1%% n2 0:over@n2 1:ready@n1", want: "stop=1/Drain | 0:WaitingForTurn 1:Stopping"},
		{name: "one whose restart waits", world: "parallel 2 n1%% n2 0:ready@n1 1:running@n2", change: asked(0), want: "stop=0/Drain | 0:Stopping 1:NotReady"},
		{name: "all at once", world: "ordered 3 floor=3 n1%% n2 0:ready@n1 1:ready@n1 2:ready@n2", want: "stop=1/Drain stop=0/Drain | 0:Stopping 1:Stopping"},
	})
}

// TestNodeShutdown: the host goes down in any case; what is waited for is what may return meanwhile.
func TestNodeShutdown(t *testing.T) {
	check(t, []rule{
		{name: "highest first", world: "ordered 3 n1^ n2 0:ready@n1 1:ready@n2 2:ready@n1", want: "stop=2/NodeShutdown | 2:Stopping 0:WaitingForTurn",
			says: "db-0: it stops for the shutdown of the host of node n1 when db-2 is gone"},
		{name: "the next when that one is gone, which does not return before the boot", world: "ordered 3 volumes n1^ n2 0:ready@n1 1:ready@n2 2:shut@n1",
			want: "stop=0/NodeShutdown | 0:Stopping 2:WaitingForPredecessor"},
		{name: "who waits for the host says so", world: "ordered 2 volumes n1^ n2 0:ready@n2 1:shut@n1", want: "| 1:Cordoned",
			says: "its volumes are on node n1, which is being shut down: it starts there after the boot"},
		{name: "one that may start elsewhere does, and is waited for", world: "ordered 3 n1^ n2 0:ready@n1 1:ready@n2 2:starting@n2", want: "| 2:Starting 0:WaitingForTurn",
			says: "db-0: it stops for the shutdown of the host of node n1 when db-2 is available, or the time of the shutdown is nearly over"},
		{name: "it starts elsewhere when all of this host are gone", world: "ordered 2 n1^ n2 0:ready@n2 1:shut@n1", want: "start=1/NodeShutdown@n2 | 1:Starting"},
		{name: "under Parallel all at once", world: "parallel 3 volumes n1^ n2 0:ready@n1 1:ready@n2 2:ready@n1", want: "stop=2/NodeShutdown stop=0/NodeShutdown | 0:Stopping 2:Stopping"},
		{name: "two hosts at once: the second waits for the first", world: "parallel 3 volumes n1^ n2^ n3 0:ready@n1 1:ready@n2 2:ready@n3", want: "stop=1/NodeShutdown | 1:Stopping 0:WaitingForTurn",
			says: "db-0: it stops for the shutdown of the host of node n1 when db-1 is available, or the time of the shutdown is nearly over"},
		{name: "one that boots is waited for", world: "parallel 3 volumes n1^ n2~ n3 0:ready@n1 1:shut@n2 2:ready@n3", want: "| 1:NodeSilent 0:WaitingForTurn"},
		{name: "but not when the time is nearly over", world: "parallel 3 volumes n1^^ n2~ n3 0:ready@n1 1:shut@n2 2:ready@n3", want: "stop=0/NodeShutdown | 0:Stopping 1:NodeSilent"},
		{name: "then nobody waits for anybody", world: "ordered 3 n1^^ n2 0:ready@n1 1:ready@n2 2:ready@n1", want: "stop=2/NodeShutdown stop=0/NodeShutdown | 0:Stopping 2:Stopping"},
		{name: "the floor does not hold a host", world: "parallel 2 floor=2 n1^ n2 0:ready@n1 1:ready@n2", want: "stop=0/NodeShutdown | 0:Stopping"},
		{name: "one that is not available ends as the others", world: "parallel 2 n1^ n2 0:running@n1 1:ready@n2", want: "stop=0/NodeShutdown | 0:Stopping"},
		{name: "no new member starts there", world: "parallel 2 n1^ n2 0:ready@n2", want: "start=1/Create@n2 | 1:Starting"},
		{name: "nothing starts there on a single host", world: "parallel 1 n1^ 0:shut@n1", want: "| 0:NoNode"},
		{name: "after the boot it starts there", world: "parallel 2 volumes n1 n2 0:shut@n1 1:ready@n2", want: "start=0/NodeShutdown@n1 | 0:Starting"},
		{name: "a silent node's are left alone", world: "parallel 2 n1^~ n2 0:ready@n1 1:ready@n2", want: "| 0:NodeSilent"},
		{name: "not those of a set that nobody owns", world: "ordered 1 orphaned n1^ n2 0:ready@n1", want: "|"},
	})
}

// TestADrainedMemberDoesNotMakeARolloutStall: who works on a host for an hour finds no set rolled back for it.
func TestADrainedMemberDoesNotMakeARolloutStall(t *testing.T) {
	for _, c := range []struct {
		world string
		clock bool
	}{
		{"ordered 2 volumes n1% n2 rollback update=h2 current=h1 0:drained@n1 1:ready@n2/h2", false},
		{"ordered 2 volumes n1% n2 rollback update=h2 current=h1 0:over@n1 1:ready@n2/h2", true},
		{"ordered 2 volumes n1^ n2 rollback update=h2 current=h1 0:shut@n1 1:ready@n2/h2", false},
		{"ordered 2 volumes n1~ n2 rollback update=h2 current=h1 0:shut@n1 1:ready@n2/h2", false},
		{"ordered 2 volumes n1~ n2 rollback update=h2 current=h1 0:over@n1 1:ready@n2/h2", true},
		{"ordered 2 volumes n1! n2 rollback update=h2 current=h1 0:drained@n1 1:ready@n2/h2", true},
	} {
		w := world(t, c.world)
		w.Reached, w.Standstill = Next(w).Reached, 24*time.Hour
		p := Next(w)
		if gaveUp := p.Status.RolledBackFrom != ""; p.Clock != c.clock || gaveUp != c.clock {
			t.Errorf("world %s: the clock runs: %v, rolled back: %v; want %v", c.world, p.Clock, gaveUp, c.clock)
		}
	}
}
