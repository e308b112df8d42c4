package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
)

// ask is a person's request about a volume, made if it is not refused.
func (s *stage) ask(name string, verb spec.VolumeVerb) {
	s.t.Helper()
	claim, member, _ := strings.Cut(name, "-")
	slot := s.slot(member)
	q := spec.VolumeRequest{ID: slot.ID, Claim: spec.ClaimName(claim), Verb: verb, Token: slot.Identity.LastToken}
	if v := slot.Volumes[q.Claim]; v != nil {
		q.Volume = v.UID
	}
	if s.refused = Refusal(s.w, q); s.refused == "" {
		slot.Asked = map[spec.ClaimName]*spec.VolumeRequest{q.Claim: &q}
	}
}

// saidOfVolumes is an action on volumes in words.
func saidOfVolumes(a Action) string {
	var lines []string
	switch a := a.(type) {
	case SetVolumes:
		for _, v := range a.Volumes {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", spec.VolumeName(v.ID, v.Claim), v.Fate, a.Text))
		}
	case DropVolume:
		lines = append(lines, fmt.Sprintf("%s is gone: %s", spec.VolumeName(a.ID, a.Claim), a.Text))
	case VoidRequest:
		lines = append(lines, fmt.Sprintf("what was asked of %s is not done: %s", spec.VolumeName(a.ID, a.Claim), a.Text))
	}
	return strings.Join(lines, "\n  ")
}

// move has the hosts do what they are told with volumes; it reports whether any did.
func (s *stage) move() (any bool) {
	s.w.Slots = slices.Clone(s.w.Slots)
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		for claim, v := range slot.Volumes {
			if v.Fate != spec.FateReclaiming || slot.Said[claim] != nil || !s.live(v.Node) {
				continue
			}
			slot.Said = maps.Clone(slot.Said)
			if slot.Said == nil {
				slot.Said = map[spec.ClaimName]*spec.VolumeReport{}
			}
			slot.Said[claim] = &spec.VolumeReport{ID: slot.ID, Claim: claim, Volume: v.UID, Node: v.Node, State: spec.VolumeTrashed}
			any = true
		}
	}
	return any
}

// volumes writes what there is of volumes, and what a person was refused.
func (s *stage) volumes(out io.Writer) {
	var words []string
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		for _, claim := range slices.Sorted(maps.Keys(slot.Volumes)) {
			words = append(words, fmt.Sprintf("%s %s", spec.VolumeName(slot.ID, claim), slot.Volumes[claim].Fate))
		}
	}
	if len(words) > 0 {
		fmt.Fprintln(out, "    volumes "+strings.Join(words, ", "))
	}
	if s.refused != "" {
		fmt.Fprintln(out, "    refused: "+s.refused)
		s.refused = ""
	}
}
