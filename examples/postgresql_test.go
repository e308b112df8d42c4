package examples

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// What is made has a control file, and what copies and runs says what it was given.
const (
	fakeInitdb = `#!/bin/bash
mkdir -p "$2/global" && touch "$2/global/pg_control" && echo install >> "$FAKE/calls"
`
	fakePostgres = `#!/bin/bash
cat > "$FAKE/sql"
[ ! -e "$FAKE/breaks" ] || kill -KILL $PPID
`
	fakePatroni = `#!/bin/bash
cp "$1" "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
`
	fakePSQL = `#!/bin/bash
[ -e "$FAKE/answer" ] && cat "$FAKE/answer"
`
)

func newPostgreSQL(t *testing.T, ordinal int) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "postgresql", ordinal)
	for name, program := range map[string]string{"initdb": fakeInitdb, "postgres": fakePostgres, "patroni": fakePatroni, "psql": fakePSQL} {
		h.put("bin/"+name, program)
	}
	h.put("disk/.keep", "")
	h.put("parameters", "jit: \"off\"\n")
	h.put("dcs", "ttl: 20\n")
	h.env = append(h.env, "CONF="+h.dir+"/parameters", "DCS="+h.dir+"/dcs", "APP_PASSWORD=it's", "PATRONI_SUPERUSER_PASSWORD=super",
		"PATRONI_REPLICATION_PASSWORD=copy", "STEAD_NAMESPACE=default", "STEAD_CLUSTER_DOMAIN=d")
	facts := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	h.set(facts)
	return h, facts
}

// runs waits until Patroni runs, and reports whether its configuration would let it make a database.
func (h *home) runs() (makes bool) {
	h.t.Helper()
	until(h.t, "Patroni runs, not "+h.read("log"), func() bool { return h.has("ran") })
	return strings.Contains(h.read("ran"), "\nbootstrap:\n  dcs:\n    ttl: 20\n")
}

func TestOnlyTheFirstMemberOfPostgreSQLMakesTheDatabase(t *testing.T) {
	t.Parallel()
	h, _ := newPostgreSQL(t, 0)
	h.put("facts/volume-new", "data first\n")
	h.start()
	if !h.runs() || h.read("calls") != "install\n" || !strings.Contains(h.read("sql"), "CREATE ROLE app LOGIN PASSWORD 'it''s'\n") {
		t.Errorf("calls %q, statements %q", h.read("calls"), h.read("sql"))
	}

	h, facts := newPostgreSQL(t, 1)
	h.put("facts/volume-new", "data first\n")
	h.start()
	until(t, "it waits", func() bool { return strings.Contains(h.read("log"), "waiting for the first members") })
	facts.Peers[0].Volumes = records.VolumesUsed
	h.set(facts)
	if h.runs() || h.read("calls") != "" {
		t.Errorf("a member that is not the first has calls %q and may make a database: %s", h.read("calls"), h.read("ran"))
	}
}

func TestAnEmptyDiskOfPostgreSQLIsCopiedNeverMade(t *testing.T) {
	t.Parallel()
	h, facts := newPostgreSQL(t, 0)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("facts/volume-new", "data replaced\n")
	h.put("disk/postgresql/PG_VERSION", "15\n") // a copy that was broken off
	h.start()
	if h.runs() || h.read("calls") != "" || h.has("disk/postgresql") {
		t.Errorf("calls %q, and what was copied before is there: %v", h.read("calls"), h.has("disk/postgresql"))
	}
}

func TestADatabaseThatWasNotMadeWholeIsMadeAgain(t *testing.T) {
	t.Parallel()
	h, _ := newPostgreSQL(t, 0)
	h.put("facts/volume-new", "data first\n")
	h.put("breaks", "")
	_, wait := h.start()
	wait()
	if h.has("disk/postgresql") {
		t.Fatal("half a database is in the place of a whole one")
	}
	h.move("breaks", "broke")
	h.start()
	if !h.runs() || h.read("calls") != "install\ninstall\n" {
		t.Errorf("calls %q", h.read("calls"))
	}
}

func TestAMemberOfPostgreSQLWithItsDataIsStartedAsItIs(t *testing.T) {
	t.Parallel()
	h, facts := newPostgreSQL(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/postgresql/global/pg_control", "")
	h.start()
	if !h.runs() || h.read("calls") != "" || !h.has("disk/postgresql/global/pg_control") {
		t.Errorf("calls %q", h.read("calls"))
	}
}

func TestTheTermOfPostgreSQLIsItsTimeline(t *testing.T) {
	t.Parallel()
	h, _ := newPostgreSQL(t, 0)
	_, wait := h.start("role", "on_role_change", "master", "postgresql.default")
	h.put("answer.new", "0000001B0000000000000042\n") // it is promoted by now
	h.move("answer.new", "answer")
	wait()
	if got := h.read("facts/self/leader"); got != "27\n" {
		t.Errorf("the term is %q", got)
	}
	for _, said := range [][]string{{"on_role_change", "replica"}, {"on_stop", "master"}} {
		h.put("facts/self/leader", "27\n")
		_, wait := h.start("role", said[0], said[1], "postgresql.default")
		wait()
		if h.has("facts/self/leader") {
			t.Errorf("after %v it still says that it leads", said)
		}
	}
}
