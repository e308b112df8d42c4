package proof

import (
	"testing"

	"github.com/stead-project/stead/records"
)

func TestWhatANodeSaysOfAVolumeProvesItGoneOrBack(t *testing.T) {
	volume := func(fate records.VolumeFate) *records.Volume { return &records.Volume{UID: "v", Turn: 2, Fate: fate} }
	said := func(state records.VolumeState) *records.VolumeReport {
		return &records.VolumeReport{Volume: "v", Turn: 2, State: state}
	}
	other, earlier := said(records.VolumeTrashed), said(records.VolumeTrashed)
	other.Volume, earlier.Turn = "w", 1
	otherFound := said(records.VolumeFound)
	otherFound.Volume = "w"
	for _, c := range []struct {
		name       string
		v          *records.Volume
		said       *records.VolumeReport
		gone, back bool
	}{
		{"no record, and something was said", nil, said(records.VolumeTrashed), false, false},
		{"nothing was said", volume(records.FateReclaiming), nil, false, false},
		{"it is to go, and is gone", volume(records.FateReclaiming), said(records.VolumeTrashed), true, false},
		{"another is", volume(records.FateReclaiming), other, false, false},
		{"it was in an earlier turn", volume(records.FateReclaiming), earlier, false, false},
		{"it is lost, and nowhere", volume(records.FateLost), said(records.VolumeAbsent), true, false},
		{"it is lost, and is there", volume(records.FateLost), said(records.VolumeFound), false, true},
		{"another is there", volume(records.FateLost), otherFound, false, false},
		{"it comes back, and lies in the trash still", volume(records.FateRestoring), said(records.VolumeTrashed), false, false},
		{"it comes back, and is nowhere", volume(records.FateRestoring), said(records.VolumeAbsent), true, false},
		{"it comes back, and is there", volume(records.FateRestoring), said(records.VolumeFound), false, true},
		{"it is kept, whatever is said", volume(records.FateKeep), said(records.VolumeTrashed), false, false},
		{"it is kept, and is there", volume(records.FateKeep), said(records.VolumeFound), false, false},
	} {
		if gone, back := VolumeGone(c.v, c.said), VolumeFound(c.v, c.said); gone != c.gone || back != c.back {
			t.Errorf("%s: gone %v, back %v; want %v, %v", c.name, gone, back, c.gone, c.back)
		}
	}
}

func TestAVolumeIsLostWithItsHostOnlyWhenBothAreSaid(t *testing.T) {
	lost := &records.Volume{UID: "v", Fate: records.FateLost}
	for _, c := range []struct {
		name string
		v    *records.Volume
		n    *Node
		want bool
	}{
		{"both are said", lost, &Node{Fenced: true}, true},
		{"there is no volume", nil, &Node{Fenced: true}, false},
		{"it is to go, which its host can do when it is back", &records.Volume{UID: "v", Fate: records.FateReclaiming}, &Node{Fenced: true}, false},
		{"the host is silent only", lost, &Node{}, false},
		{"the host is not known", lost, nil, false},
		{"the host is there", lost, &Node{Fenced: true, Session: &records.Session{}}, false},
		{"it is shared, and another host can look for it", &records.Volume{UID: "v", Fate: records.FateLost, Shared: true}, &Node{Fenced: true}, false},
	} {
		if got := LostWithHost(c.v, c.n); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
