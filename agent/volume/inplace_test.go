package volume

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
)

// kept are the volumes that an agent lists.
func kept(t *testing.T, v *Volumes) []records.HostVolume {
	t.Helper()
	list, err := v.InPlace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestANodeListsTheVolumesThatAreInTheirPlaces: also sealed ones and such whose disk it does not see, and none that is given up.
func TestANodeListsTheVolumesThatAreInTheirPlaces(t *testing.T) {
	l := newLab(t)
	if got := kept(t, l.agent()); len(got) != 0 {
		t.Fatalf("a new node has %+v", got)
	}
	l.filled()
	is := records.HostVolume{ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class}
	want := func(what string, want ...records.HostVolume) {
		t.Helper()
		if got := kept(t, l.agent()); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	want("in its place", is)
	p := part(moves.MoveSource)
	if err := NewMoves(l.agent()).Seal(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	sealed := is
	sealed.SealedFor = p.Peer
	want("sealed", sealed)
	if err := NewMoves(l.agent()).Unseal(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	unseen := is
	unseen.Unseen = true
	root := l.agent().classes["local"]
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	v := l.agent()
	if err := os.RemoveAll(root); err != nil { // the agent makes the directory of its own class
		t.Fatal(err)
	}
	if got := kept(t, v); !slices.Equal(got, []records.HostVolume{unseen}) {
		t.Errorf("its disk is not there: %+v", got)
	}
	if err := os.Rename(root+".away", root); err != nil {
		t.Fatal(err)
	}
	want("its disk is back", is)

	late, cancel := context.WithCancel(t.Context())
	cancel()
	v = l.agent()
	v.looking.Store(data.Class, true) // a look hangs
	if got, err := v.InPlace(late); err != nil || !slices.Equal(got, []records.HostVolume{unseen}) {
		t.Errorf("its disk hangs: %+v, %v", got, err)
	}
	if err := l.agent().Reclaim(t.Context(), giveUp); err != nil {
		t.Fatal(err)
	}
	want("in the trash")
}

// TestWhatIsInItsPlaceIsNotErased: an order of a store that went back takes a volume for one in the trash.
func TestWhatIsInItsPlaceIsNotErased(t *testing.T) {
	l := newLab(t)
	path := l.filled()
	if err := l.agent().Erase(t.Context(), data.Class, data.ID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil || len(kept(t, l.agent())) != 1 {
		t.Errorf("%v; the node lists %+v", err, kept(t, l.agent()))
	}
}
