package examples

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stead-project/stead/records"
)

// fakeMariadbd tells where InnoDB is, makes an empty database, or runs until it is stopped.
const fakeMariadbd = `#!/bin/bash
case "$*" in
*--wsrep-recover*) cat "$FAKE/recovers" ;;
*--bootstrap*) cat > "$FAKE/sql" ;;
*) echo "$*" > "$FAKE/args.new" && mv "$FAKE/args.new" "$FAKE/args"
  trap 'exit 0' TERM; while :; do sleep 0.02; done ;;
esac
`

const fakeInstall = `#!/bin/bash
for arg; do case $arg in --datadir=*) mkdir -p "${arg#*=}" ;; esac; done
echo install >> "$FAKE/calls"
`

const (
	history = "24db87ad-eb5b-11f1-9dcf-0f99738b0164"
	none    = "00000000-0000-0000-0000-000000000000"
	saved   = "disk/mysql/grastate.dat"
	forming = "--wsrep-cluster-address=gcomm:// "
	joining = "--wsrep-cluster-address=gcomm://galera-"
)

// state is Galera's file of a history and a transaction.
func state(history string, number int) string {
	return fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %d\nsafe_to_bootstrap: 0\n", history, number)
}

// galera is the world of one of three members, and what its peers say.
type galera struct {
	*home
	facts  records.Snapshot
	stop   func()
	waited string // its note while it waits
}

func newGalera(t *testing.T, ordinal int) *galera {
	t.Helper()
	g := &galera{home: newHome(t, "galera", ordinal)}
	g.put("bin/mariadbd", fakeMariadbd)
	g.put("bin/mariadb-install-db", fakeInstall)
	g.facts = records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{g.peer(0), g.peer(1), g.peer(2)}}
	g.set(g.facts)
	g.env = append(g.env, "APP_PASSWORD=it's", "STEAD_ADDRESS=192.0.2.1", "STEAD_NAMESPACE=default")
	return g
}

// used gives every member data from before.
func (g *galera) used() {
	g.facts.Bootstrapped = true
	for i := range g.facts.Peers {
		g.facts.Peers[i].Volumes = records.VolumesUsed
	}
	g.set(g.facts)
}

func (g *galera) begin() {
	g.t.Helper()
	cmd, wait := g.start()
	g.stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		wait()
	}
}

// says waits until the script has said it.
func (g *galera) says(what string) {
	g.t.Helper()
	until(g.t, "it says "+what+", not "+g.read("log"), func() bool { return strings.Contains(g.read("log"), what) })
}

// waits waits until the member says that it waits, and lets its peers and itself read that.
func (g *galera) waits(ordinal int) {
	g.t.Helper()
	until(g.t, "it says that it waits", func() bool { return strings.HasPrefix(g.read("facts/self/note"), "waits ") })
	g.waited = strings.TrimSpace(g.read("facts/self/note"))
	g.note(ordinal, g.waited)
}

func (g *galera) note(ordinal int, text string) {
	g.facts.Peers[ordinal].Note = text
	g.set(g.facts)
}

// runs waits until the member says that it runs, checks that mariadbd does not run before its peers read it,
// and lets them.
func (g *galera) runs(ordinal int) (args string) {
	g.t.Helper()
	until(g.t, "it says that it runs", func() bool { return strings.HasPrefix(g.read("facts/self/note"), "runs ") })
	if g.waited != "" {
		g.put("facts/.set.env", g.read("facts/set.env")+": > \"$FAKE/looked\"\n") // it is run by who reads it
		g.move("facts/.set.env", "facts/set.env")
		until(g.t, "it looks again", func() bool { return g.has("looked") || g.has("args") })
		if g.has("args") {
			g.t.Error("mariadbd runs while peers read that it waits")
		}
	}
	g.note(ordinal, strings.TrimSpace(g.read("facts/self/note")))
	until(g.t, "mariadbd runs", func() bool { return g.has("args") })
	return g.read("args")
}

// serve lets a peer answer, on the loopback, and be ready.
func (g *galera) serve(ordinal int) {
	g.t.Helper()
	host := fmt.Sprintf("127.78.%d.%d", os.Getpid()>>8&255, os.Getpid()&255|1)
	lis, err := net.Listen("tcp", host+":3306")
	if err != nil {
		g.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // that it answers is all
		}
	})
	g.t.Cleanup(func() {
		_ = lis.Close() // ends the loop
		wg.Wait()
	})
	g.facts.Peers[ordinal].FQDN, g.facts.Peers[ordinal].Ready = host, true
	g.set(g.facts)
}

func TestOneMemberOfGaleraFormsTheCluster(t *testing.T) {
	g := newGalera(t, 0)
	g.put("facts/volume-new", "data first\n")
	g.begin()
	args := g.runs(0)
	g.stop()
	if !strings.Contains(args, forming) || g.read("calls") != "install\n" || !strings.Contains(g.read("sql"), "IDENTIFIED BY 'it''s';") {
		t.Errorf("mariadbd %q, calls %q, SQL %q", args, g.read("calls"), g.read("sql"))
	}

	g = newGalera(t, 1)
	g.put("facts/volume-new", "data first\n")
	g.begin()
	g.says("waiting for the first members")
	g.facts.Peers[0].Volumes = records.VolumesUsed
	g.serve(0)
	args = g.runs(1)
	g.stop()
	if strings.Contains(args, forming) || g.read("calls") != "" {
		t.Errorf("the second member: mariadbd %q, calls %q", args, g.read("calls"))
	}
}

func TestAMemberOfGaleraJoinsWhoServes(t *testing.T) {
	for _, c := range []struct {
		name, state, recovers string
		start                 string // the position with which mariadbd starts; "": none
	}{
		{"stopped in order", state(history, 41), "", history + ":41"},
		{"killed", state(history, -1), "x WSREP: Recovered position: " + history + ":44\n", history + ":44"},
		{"killed in a state transfer", state(none, -1), "", ""},
		{"with an empty disk that was used", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGalera(t, 1)
			g.used()
			if c.state != "" {
				g.put(saved, c.state)
			}
			g.put("recovers", c.recovers)
			g.serve(2)
			g.begin()
			args := g.runs(1)
			g.stop()
			if strings.Contains(args, forming) || strings.Contains(args, "start-position="+c.start) != (c.start != "") || g.read("calls") != "" {
				t.Errorf("mariadbd %q, calls %q; want the start position %q", args, g.read("calls"), c.start)
			}
		})
	}
}

func TestWhoseDataIsNewestFormsGaleraAgain(t *testing.T) {
	waits := func(position string) string { return "waits 5d2ce5f2-81c4-4c19-9a43-2d4af5d8b2ca " + position }
	for _, c := range []struct {
		name   string
		own    int    // the last transaction of member 1
		n0, n2 string // notes of the others
		change func(p *records.Snapshot)
		forms  bool
		says   string
	}{
		{"the newest forms it", 9, waits(history + ":8"), waits(history + ":7"), nil, true, "forming the cluster again"},
		{"of equals the lowest", 9, waits("empty"), waits(history + ":9"), nil, true, "forming the cluster again"},
		{"10 is more than 9", 9, waits(history + ":10"), waits(history + ":8"), nil, false, "galera-0 has the newest data"},
		{"of equals not the higher", 9, waits(history + ":9"), waits(history + ":8"), nil, false, "galera-0 has the newest data"},
		{"not before all have said what they have", 9, waits(history + ":8"), "", nil, false, "galera-2 has not said"},
		{"not while one runs", 9, waits(history + ":8"), "runs 5d2ce5f2-81c4-4c19-9a43-2d4af5d8b2ca", nil, false, "galera-2 has not said"},
		{"not with another history", 9, waits(none + ":8"), waits(history + ":8"), nil, false, "has another history"},
		{"not before all have an address", 9, waits(history + ":8"), waits(history + ":8"),
			func(p *records.Snapshot) { p.Replicas = 4 }, false, "only 3 of 4 members"},
		{"who left does not count", 9, waits(history + ":8"), waits(history + ":8"), func(p *records.Snapshot) {
			p.Expected = []records.Peer{{Name: "galera-3", Ordinal: 3, FQDN: "galera-3.galera.d", Volumes: records.VolumesUsed}}
		}, true, "forming the cluster again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGalera(t, 1)
			g.used()
			g.put(saved, state(history, c.own))
			g.facts.Peers[0].Note, g.facts.Peers[2].Note = c.n0, c.n2
			if c.change != nil {
				c.change(&g.facts)
			}
			g.note(1, "waits 0a53efb1-3ae4-4a1c-8f0f-6f1d4a3e6c2b "+fmt.Sprint(history, ":", c.own)) // of an earlier run
			g.begin()
			if c.n0 != "" && c.n2 != "" && c.change == nil {
				g.says("the peers have not heard")
			}
			g.waits(1)
			g.says(c.says)
			if !c.forms {
				g.stop()
				if g.has("args") {
					t.Errorf("mariadbd was started with %q", g.read("args"))
				}
				return
			}
			args := g.runs(1)
			g.stop()
			if !strings.Contains(args, forming) || !strings.Contains(args, fmt.Sprint("start-position=", history, ":", c.own)) || !strings.Contains(g.read(saved), "safe_to_bootstrap: 1") {
				t.Errorf("mariadbd %q, %s", args, g.read(saved))
			}
		})
	}
}

// An earlier run said that it waits, and its peers may still read that.
func TestAMemberOfGaleraRunsOnlyWhenItsPeersKnow(t *testing.T) {
	g := newGalera(t, 1)
	g.used()
	g.put(saved, state(history, 9))
	g.put("disk/mysql.waits", "")
	g.waited = "waits 0a53efb1-3ae4-4a1c-8f0f-6f1d4a3e6c2b " + history + ":9"
	g.note(1, g.waited)
	g.serve(0)
	g.begin()
	args := g.runs(1)
	g.stop()
	if strings.Contains(args, forming) || g.has("disk/mysql.waits") {
		t.Errorf("mariadbd %q; its mark is there: %v", args, g.has("disk/mysql.waits"))
	}
}

func TestAMemberOfGaleraRefusesWhatItCannotExplain(t *testing.T) {
	for _, c := range []struct{ name, state, recovers, says string }{
		{"an empty disk that was used, and nobody serves", "", "", "refused: the disk is empty, but was used before"},
		{"data whose position cannot be read", state(history, -1), "InnoDB: corrupt\n", "refused: the position of the data"},
		{"data of another history than Galera says", state(history, -1), "x Recovered position: " + strings.Replace(history, "2", "3", 1) + ":7\n", "refused: the position of the data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGalera(t, 1)
			g.used()
			if c.state != "" {
				g.put(saved, c.state)
			}
			g.put("recovers", c.recovers)
			g.run()
			if g.code != 75 || !strings.Contains(g.read("log"), c.says) || g.has("args") || strings.HasPrefix(g.read("facts/self/note"), "waits") {
				t.Errorf("code %d, note %q, %q; want 75, none, and %q", g.code, g.read("facts/self/note"), g.read("log"), c.says)
			}
		})
	}
}

func TestADonorOfGaleraSaysThatItIsBusy(t *testing.T) {
	g := newGalera(t, 1)
	g.put("main.sh", g.read("entry.sh"))
	for _, c := range []struct{ status, busy string }{{"donor", "state transfer: donor\n"}, {"joined", "state transfer: donor\n"}, {"synced", ""}, {"joiner", "state transfer: joiner\n"}} {
		g.put("entry.sh", `exec bash "$FAKE/main.sh" notify --status `+c.status+" --uuid "+history+" --members x\n")
		g.run()
		if got := g.read("facts/self/busy"); g.code != 0 || got != c.busy {
			t.Errorf("%s: code %d, busy %q, want %q", c.status, g.code, got, c.busy)
		}
	}
}
