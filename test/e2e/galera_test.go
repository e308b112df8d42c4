package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// galera asks MariaDB in a member.
func (l *Lab) galera(ordinal int, statement string) (string, error) {
	out, err := l.trySteadFor(time.Minute, "exec", fmt.Sprint("galera-", ordinal), "-c", "galera", "--", "mariadb", "--no-defaults", "-S", "/data/socket", "-N", "-e", statement)
	return strings.TrimSpace(out), err
}

// wholeGalera asks each member whether it has all data, and how many belong to the cluster.
func wholeGalera(l *Lab, n int) error {
	for i := range n {
		out, err := l.galera(i, "show status where variable_name in ('wsrep_cluster_size', 'wsrep_cluster_status', 'wsrep_local_state_comment')")
		for _, want := range []string{fmt.Sprintf("wsrep_cluster_size\t%d", n), "wsrep_cluster_status\tPrimary", "wsrep_local_state_comment\tSynced"} {
			if err != nil || !strings.Contains(out, want) {
				return fmt.Errorf("galera-%d: not %q: %s, %w", i, want, out, err)
			}
		}
	}
	return nil
}

// leaderGalera: all members of Galera are equal. The one that formed the cluster stands for a leader.
func leaderGalera(*Lab) (int, error) { return 0, nil }

// Deleted, the disk of member 0 given up, applied again: member 0, which formed the cluster,
// joins the other two, and all rows are there.
func TestGaleraLosesNothingWhenItsSetIsMadeAgain(t *testing.T) {
	if os.Getenv("STEAD_SOAK") == "" {
		t.Skip("a piece of make soak: it needs the image of MariaDB")
	}
	t.Parallel()
	l := newLab(t)
	l.startAll(l.debImage("galera"))
	wait := []string{"--wait", "--timeout", patience}
	apply := append([]string{"apply", "-f", "../../examples/galera/galera.yaml"}, wait...)
	l.stead(apply...)
	var rows []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf("(%d)", i))
	}
	for _, statement := range []string{"create table app.t (id int primary key)", "insert into app.t values " + strings.Join(rows, ",")} {
		if out, err := l.galera(1, statement); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l.stead(append([]string{"delete", "set", "galera"}, wait...)...)
	l.stead(append([]string{"volume", "reclaim", "data-galera-0", "--yes"}, wait...)...)
	l.stead(apply...)
	for i := range 3 {
		if out, err := l.galera(i, "select count(*) from app.t"); err != nil || out != "500" {
			judge.Broken(t, "galera-%d has not the 500 acknowledged rows: %q, %v", i, out, err)
		}
	}
	if log := l.stead("logs", "galera-0"); !strings.Contains(log, "entry: joining") || strings.Contains(log, "first start") {
		judge.Broken(t, "galera-0 did not join: %s", log)
	}
	t.Log("load: 500 rows acknowledged, 500 read back from each of three members")
}
