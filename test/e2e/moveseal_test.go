package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/test/judge"
)

// The store is put back to before a move while its source is sealed: the member stays down until a user gives up the move that the store
// does not know (SAFETY S12), or, where its target has the volume, makes that the member's (S11), and then starts where all that was written is.
func TestASealThatARestoredStoreDoesNotKnow(t *testing.T) {
	for name, arrived := range map[string]bool{"the volume arrived": true, "half is copied": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unknownSeal(t, arrived)
		})
	}
}

func unknownSeal(t *testing.T, arrived bool) {
	hosts := newHosts(t, 2)
	l := hosts[0]
	l.ownStore()
	steps := told(t, "The embedded store (`stead server`, `stead dev`)")
	image := l.toolArchive()
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts)
	var heard []string
	for _, h := range hosts {
		l.stead("image", "load", image, "--node", h.nodeName())
		heard = append(heard, h.startWitness())
	}
	l.apply("life", strings.Replace(lifeSet, "replicas: 3", "replicas: 1", 1), "--wait", "--timeout", patience)
	from, to := hosts[0], hosts[1]
	if l.mustMember("life-0").Status.Node == to.nodeName() {
		from, to = to, from
	}
	l.follow(steps[0])

	t.Log("after the backup the member writes, and is moved")
	const volume = "agent/volumes/default/life/data-0/data"
	fill := func(name string, size int) {
		if err := os.WriteFile(filepath.Join(from.path(volume), name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill("early", 10<<20)
	l.stead("move", "life-0", "--to", to.nodeName(), "--rate", "1Mi")
	to.eventually(time.Minute, "it is being copied", func() error {
		if found, _ := filepath.Glob(to.path("agent/volumes/.moving/*/data/data/early")); len(found) != 1 {
			return errors.New("nothing of it is there")
		}
		return nil
	})
	if arrived {
		l.stead("node", "cordon", to.nodeName()) // so that no life starts there
		fill("late", 1)
		to.eventually(3*time.Minute, "it arrived", func() error {
			_, err := os.Stat(filepath.Join(to.path(volume), "late"))
			return err
		})
	} else {
		fill("late", 200<<20) // which takes minutes, sealed
		l.eventually(3*time.Minute, "its source is sealed", func() error { return l.steadSays("copies the rest and compares", "explain", "life-0") })
	}
	down := func(when string) {
		t.Helper()
		for _, h := range hosts {
			if pids := h.pidsOf("life-0"); len(pids) > 0 {
				judge.Broken(t, "%s: life-0 runs on %s", when, h.Name)
			}
		}
	}
	down("moving")

	t.Log("the store is put back to before that")
	l.follow(steps[1])
	l.follow(steps[2])
	l.eventually(2*time.Minute, "the restore is complete", func() error {
		if st := l.restoring(); st.State != records.RestoreComplete {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	says, way := "VolumeSealed", []string{"move", "life-0", "--abort"}
	if arrived {
		says, way = "which the store does not know", []string{"volume", "restore", "data-life-0", "--node", to.nodeName()}
	}
	l.eventually(time.Minute, "the member waits for a user", func() error { return l.steadSays(says, "explain", "life-0") })
	down("restored")

	t.Log("a user says what becomes of the move")
	l.eventually(time.Minute, "it is taken", func() error {
		out, err := l.trySteadFor(time.Minute, way...)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	m := l.waitReady("life-0", nil)
	where := from
	if arrived {
		where = to
	}
	if m.Status.Node != where.nodeName() {
		judge.Broken(t, "life-0 is on %s; want %s", m.Status.Node, where.nodeName())
	}
	for _, name := range []string{"early", "late"} {
		if _, err := os.Stat(filepath.Join(where.path(volume), name)); err != nil {
			judge.Broken(t, "what was written is not with the member: %v", err)
		}
	}
	l.assertOneLifeOnHosts(heard, "life-0")
}
