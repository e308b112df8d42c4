package plan

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestWhatANodeSaysOfAVolumeProvesItGoneOrBack(t *testing.T) {
	volume := func(fate spec.VolumeFate) *spec.Volume { return &spec.Volume{UID: "v", Turn: 2, Fate: fate} }
	said := func(state spec.VolumeState) *spec.VolumeReport {
		return &spec.VolumeReport{Volume: "v", Turn: 2, State: state}
	}
	other, earlier := said(spec.VolumeTrashed), said(spec.VolumeTrashed)
	other.Volume, earlier.Turn = "w", 1
	otherFound := said(spec.VolumeFound)
	otherFound.Volume = "w"
	for _, c := range []struct {
		name       string
		v          *spec.Volume
		said       *spec.VolumeReport
		gone, back bool
	}{
		{"no record, and something was said", nil, said(spec.VolumeTrashed), false, false},
		{"nothing was said", volume(spec.FateReclaiming), nil, false, false},
		{"it is to go, and is gone", volume(spec.FateReclaiming), said(spec.VolumeTrashed), true, false},
		{"another is", volume(spec.FateReclaiming), other, false, false},
		{"it was in an earlier turn", volume(spec.FateReclaiming), earlier, false, false},
		{"it is lost, and nowhere", volume(spec.FateLost), said(spec.VolumeAbsent), true, false},
		{"it is lost, and is there", volume(spec.FateLost), said(spec.VolumeFound), false, true},
		{"another is there", volume(spec.FateLost), otherFound, false, false},
		{"it comes back, and lies in the trash still", volume(spec.FateRestoring), said(spec.VolumeTrashed), false, false},
		{"it comes back, and is nowhere", volume(spec.FateRestoring), said(spec.VolumeAbsent), true, false},
		{"it comes back, and is there", volume(spec.FateRestoring), said(spec.VolumeFound), false, true},
		{"it is kept, whatever is said", volume(spec.FateKeep), said(spec.VolumeTrashed), false, false},
		{"it is kept, and is there", volume(spec.FateKeep), said(spec.VolumeFound), false, false},
	} {
		if gone, back := Gone(c.v, c.said), Back(c.v, c.said); gone != c.gone || back != c.back {
			t.Errorf("%s: gone %v, back %v; want %v, %v", c.name, gone, back, c.gone, c.back)
		}
	}
}

func TestAVolumeIsLostWithItsHostOnlyWhenBothAreSaid(t *testing.T) {
	lost := &spec.Volume{UID: "v", Fate: spec.FateLost}
	for _, c := range []struct {
		name string
		v    *spec.Volume
		n    *Node
		want bool
	}{
		{"both are said", lost, &Node{Fenced: true}, true},
		{"there is no volume", nil, &Node{Fenced: true}, false},
		{"it is to go, which its host can do when it is back", &spec.Volume{UID: "v", Fate: spec.FateReclaiming}, &Node{Fenced: true}, false},
		{"the host is silent only", lost, &Node{}, false},
		{"the host is not known", lost, nil, false},
		{"the host is there", lost, &Node{Fenced: true, Session: &spec.Session{}}, false},
	} {
		if got := Left(c.v, c.n); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
