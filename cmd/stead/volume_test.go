package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

func TestVolumesAreReclaimedAndRestoredByHand(t *testing.T) { newCluster(t, nil).play("volume.txt") }

// Without a terminal there is no user who could confirm.
func TestOnlyATerminalIsAsked(t *testing.T) {
	var said strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&said)
	pipe, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := feed.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	cmd.SetIn(pipe)
	if err := confirm(cmd, "Give it up?", false); err == nil || said.Len() != 0 {
		t.Errorf("asked %q, error %v; want no question and a refusal", &said, err)
	}
	if err := confirm(cmd, "Give it up?", true); err != nil {
		t.Errorf("with --yes: %v", err)
	}
}

// A member whose volume is missing gets a new one once a user declares it lost.
func TestALostVolumeIsReplacedWhenAUserDeclaresIt(t *testing.T) {
	c := newCluster(t, nil)
	stead := func(want int, args ...string) string {
		t.Helper()
		code, out := c.stead(args...)
		if code != want {
			t.Fatalf("%v: code %d, want %d\n%s", args, code, want, out)
		}
		return out
	}
	stead(exitDone, "apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m")
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
	c.until("it is noted that db-1 was ready on it", func() bool {
		_, kvs, err := c.store.Get(t.Context(), store.IdentityKey(id))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := store.Decode[records.IdentityRecord](kvs[store.IdentityKey(id)])
		return err == nil && rec.VolumeReady["data"] > 0
	})
	c.host.DropVolumes(id, "data")
	stead(exitDone, "restart", "db-1")
	c.until("db-1 misses its volume", func() bool { return strings.Contains(stead(exitDone, "explain", "db"), "VolumeMissing") })
	out := stead(exitDone, "volume", "reclaim", "data-db-1", "--lost", "--yes", "--wait", "--timeout", "2m")
	for _, want := range []string{"else db-1 starts with a new, empty one", "is gone"} {
		if !strings.Contains(out, want) {
			t.Errorf("said %q; want %q", out, want)
		}
	}
	stead(exitDone, "wait", "db", "--timeout", "2m")
	if all := stead(exitDone, "volume", "ls"); strings.Count(all, "Keep") != 3 {
		t.Errorf("volumes\n%s", all)
	}
}

func TestTheVerdictOnAVolumeThatIsGivenUp(t *testing.T) {
	kept := &records.Volume{Fate: records.FateKeep}
	for _, c := range []struct {
		name         string
		volume       *records.Volume
		status       records.ShownVolume
		over, failed bool
	}{
		{"it is not there", nil, records.ShownVolume{}, true, false},
		{"it is in the trash", &records.Volume{Fate: records.FateTrashed}, records.ShownVolume{Said: &records.VolumeReport{State: records.VolumeTrashed}}, true, false},
		{"it has not started", kept, records.ShownVolume{Asked: records.VerbReclaim}, false, false},
		{"it was refused", kept, records.ShownVolume{}, false, true},
		{"its node is asked", &records.Volume{Fate: records.FateReclaiming}, records.ShownVolume{}, false, false},
	} {
		var v *shownVolume
		if c.volume != nil {
			v = &shownVolume{Spec: *c.volume, Status: c.status}
		}
		end, err := reclaimed(v)
		if (end != "") != c.over || (err != nil) != c.failed {
			t.Errorf("%s: %q, error %v", c.name, end, err)
		}
	}
}
