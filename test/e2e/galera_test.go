package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// sql asks MariaDB in a member.
func (l *Lab) sql(name, statement string) (string, error) {
	out, err := l.trySteadFor(time.Minute, "exec", name, "--", "mariadb", "--no-defaults", "-S", "/data/socket", "-u", "root", "-N", "-e", statement)
	return strings.TrimSpace(out), err
}

// safeToBootstrap is the operator's word that a stopped member has the newest state, unless
// the member itself says so: the last one that left does.
func (l *Lab) safeToBootstrap(ordinals ...int) {
	l.t.Helper()
	file := func(o int) string {
		return l.path(fmt.Sprintf("agent/volumes/default/galera/data-%d/data/mysql/grastate.dat", o))
	}
	for _, o := range ordinals {
		text, err := os.ReadFile(file(o))
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Logf("galera-%d: %s", o, text)
		if strings.Contains(string(text), "safe_to_bootstrap: 1") {
			return
		}
	}
	first := file(ordinals[0])
	text, err := os.ReadFile(first)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(first, []byte(strings.Replace(string(text), "safe_to_bootstrap: 0", "safe_to_bootstrap: 1", 1)), 0o660); err != nil {
		l.t.Fatal(err)
	}
}

// Deleted, the disk of member 0 given up, applied again: member 0, which formed the cluster,
// joins the other two, and all rows are there.
func TestGaleraLosesNothingWhenItsSetIsMadeAgain(t *testing.T) {
	if os.Getenv("STEAD_SOAK") == "" {
		t.Skip("a piece of make soak: it needs the image of MariaDB")
	}
	t.Parallel()
	l := newLab(t)
	const archive = "../../.cache/images/galera.tar"
	if _, err := os.Stat(archive); err != nil {
		t.Fatalf("no image of MariaDB: %v; run go run ./scripts/debimage galera", err)
	}
	l.startAll(archive)
	wait := []string{"--wait", "--timeout", patience}
	apply := append([]string{"apply", "-f", "testdata/galera.yaml"}, wait...)
	l.stead(apply...)
	var rows []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf("(%d)", i))
	}
	for _, statement := range []string{"create database soak", "create table soak.t (id int primary key)", "insert into soak.t values " + strings.Join(rows, ",")} {
		if out, err := l.sql("galera-1", statement); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l.stead(append([]string{"delete", "set", "galera"}, wait...)...)
	l.stead(append([]string{"volume", "reclaim", "data-galera-0", "--yes"}, wait...)...)
	l.safeToBootstrap(1, 2)
	l.stead(apply...)
	for _, name := range []string{"galera-0", "galera-1", "galera-2"} {
		if out, err := l.sql(name, "select count(*) from soak.t"); err != nil || out != "500" {
			judge.Broken(t, "%s has not the 500 acknowledged rows: %q, %v", name, out, err)
		}
	}
	if log := l.stead("logs", "galera-0"); !strings.Contains(log, "entry: joining") || strings.Contains(log, "first start") {
		judge.Broken(t, "galera-0 did not join: %s", log)
	}
	t.Log("load: 500 rows acknowledged, 500 read back from each of three members")
}
