package e2e

import (
	"fmt"
	"strings"
	"time"
)

// nodetool asks a member of Cassandra.
func (l *Lab) nodetool(ordinal int, args ...string) (string, error) {
	command := append([]string{"exec", fmt.Sprint("cassandra-", ordinal), "-c", "cassandra", "--", "bash", "/entry/cassandra.sh", "nodetool"}, args...)
	return l.trySteadFor(2*time.Minute, command...)
}

// leaderCassandra is the first member: none leads, and it began the ring.
func leaderCassandra(*Lab) (int, error) { return 0, nil }

// wholeCassandra compares the members of the ring that are up, and all of it, as the first and the last member see it.
func wholeCassandra(l *Lab, n int) error {
	for _, i := range []int{0, n - 1} {
		out, err := l.nodetool(i, "status")
		if err != nil {
			return err
		}
		states := map[string]int{}
		for line := range strings.Lines(out) {
			if state, rest, found := strings.Cut(line, "  "); found && len(state) == 2 && strings.Contains(rest, "rack1") {
				states[state]++
			}
		}
		if states["UN"] != n || len(states) != 1 {
			return fmt.Errorf("cassandra-%d sees members by state %v, and not %d that are up", i, states, n)
		}
	}
	return nil
}
