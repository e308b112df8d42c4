package e2e

import (
	"fmt"
	"strings"
	"time"
)

// postgresql asks a member.
func (l *Lab) postgresql(ordinal int, query string) (string, error) {
	out, err := l.trySteadFor(time.Minute, "exec", fmt.Sprint("postgresql-", ordinal), "-c", "postgresql", "--", "psql", "-h", "/data", "-U", "postgres", "-Atqc", query)
	return strings.TrimSpace(out), err
}

// leaderPostgreSQL is the member that is not in recovery and has a standby without which it acknowledges nothing.
func leaderPostgreSQL(l *Lab) (leader int, err error) {
	leader = -1
	for i := range 5 {
		out, err := l.postgresql(i, "select not pg_is_in_recovery() and exists (select from pg_stat_replication where sync_state = 'sync')")
		if err == nil && out == "t" {
			if leader >= 0 {
				return -1, fmt.Errorf("postgresql-%d and postgresql-%d lead", leader, i)
			}
			leader = i
		}
	}
	if leader < 0 {
		return -1, fmt.Errorf("no member leads with a synchronous standby")
	}
	return leader, nil
}

// wholePostgreSQL asks the leader who follows it, and Stead whether it knows the same leader.
func wholePostgreSQL(l *Lab, n int) error {
	leader, err := leaderPostgreSQL(l)
	if err != nil {
		return err
	}
	out, err := l.postgresql(leader, "select count(*) from pg_stat_replication where state = 'streaming'")
	if err != nil || out != fmt.Sprint(n-1) {
		return fmt.Errorf("postgresql-%d: %v: %s of %d follow", leader, err, out, n-1)
	}
	at, err := l.dig("postgresql-leader.default.svc.cluster.local")
	if m, err := l.member(fmt.Sprint("postgresql-", leader)); err != nil || m.Status.Address != at {
		return fmt.Errorf("the Service of the leader leads to %q, not to postgresql-%d: %v", at, leader, err)
	}
	return err
}
