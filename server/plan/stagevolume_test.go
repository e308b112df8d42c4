package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// ask is a person's request about a volume, made if it is not refused.
func (s *stage) ask(name string, verb records.VolumeVerb) {
	s.t.Helper()
	claim, member, _ := strings.Cut(name, "-")
	slot := s.slot(member)
	q := records.VolumeRequest{ID: slot.ID, Claim: spec.ClaimName(claim), Verb: verb, Token: slot.Identity.LastToken}
	if v := slot.Volumes[q.Claim]; v != nil {
		q.Volume = v.UID
	}
	said := s.trash[name]
	if verb == records.VerbRestore && said != nil {
		q.Volume = said.Volume
	}
	s.refused = Refusal(s.w, q, said)
	if s.refused == "" {
		slot.Asked = map[spec.ClaimName]*records.VolumeRequest{q.Claim: &q}
		if said != nil && slot.Volumes[q.Claim] == nil {
			slot.Said = map[spec.ClaimName]*records.VolumeReport{q.Claim: said}
		}
	}
}

// saidOfVolumes is an action on volumes in words.
func saidOfVolumes(a Action) string {
	var lines []string
	switch a := a.(type) {
	case SetVolumes:
		for _, v := range a.Volumes {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", records.VolumeName(v.ID, v.Claim), v.Fate, a.Text))
		}
	case DropVolume:
		lines = append(lines, fmt.Sprintf("%s is gone: %s", records.VolumeName(a.ID, a.Claim), a.Text))
	case RestoreVolume:
		lines = append(lines, fmt.Sprintf("%s: %s: %s", records.VolumeName(a.Volume.ID, a.Volume.Claim), a.Volume.Fate, a.Text))
	case VoidRequest:
		lines = append(lines, fmt.Sprintf("what was asked of %s is not done: %s", records.VolumeName(a.ID, a.Claim), a.Text))
	}
	return strings.Join(lines, "\n  ")
}

// move has the hosts do what they are told with volumes; it reports whether any did.
func (s *stage) move() (any bool) {
	s.w.Slots = slices.Clone(s.w.Slots)
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		for claim, v := range slot.Volumes {
			if !v.Fate.Ordered() || !s.live(v.Node) {
				continue
			}
			r := s.told(v)
			if old := slot.Said[claim]; old != nil && *old == r {
				continue
			}
			slot.Said = maps.Clone(slot.Said)
			if slot.Said == nil {
				slot.Said = map[spec.ClaimName]*records.VolumeReport{}
			}
			slot.Said[claim], any = &r, true
		}
	}
	return any
}

// told has a volume's host obey, and is what it says then.
func (s *stage) told(v *records.Volume) records.VolumeReport {
	name := records.VolumeName(v.ID, v.Claim)
	r := records.VolumeReport{ID: v.ID, Claim: v.Claim, Volume: v.UID, Number: v.Number, Class: v.Class, Node: v.Node, Turn: v.Turn, State: records.VolumeFound}
	switch missing := s.missing[v.UID]; {
	case v.Fate == records.FateRestoring:
		delete(s.trash, name)
	case missing && v.Fate == records.FateLost:
		r.State = records.VolumeAbsent
	case missing:
		r.State, r.Cause, r.Message = records.VolumeRefused, causes.VolumeMissing, "it is not there"
	case v.Fate == records.FateReclaiming:
		r.State = records.VolumeTrashed
		s.trash[name] = &r
	}
	return r
}

// lose takes the directory of a volume away, or puts it back.
func (s *stage) lose(name string, away bool) {
	s.t.Helper()
	claim, member, _ := strings.Cut(name, "-")
	s.missing[s.slot(member).Volumes[spec.ClaimName(claim)].UID] = away
}

// misses: a volume of the life is not there.
func (s *stage) misses(m *records.Member) bool {
	return slices.ContainsFunc(m.Volumes, func(v records.MemberVolume) bool { return s.missing[v.ID] })
}

// volumes writes what there is of volumes, and what a person was refused.
func (s *stage) volumes(out io.Writer) {
	var words []string
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		for _, claim := range slices.Sorted(maps.Keys(slot.Volumes)) {
			v := slot.Volumes[claim]
			words = append(words, fmt.Sprintf("%s %s", records.VolumeName(slot.ID, claim), v.Fate))
			if v.Number > 1 {
				words[len(words)-1] += fmt.Sprintf(" (number %d)", v.Number)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.trash)) {
		words = append(words, name+" in the trash")
	}
	if len(words) > 0 {
		fmt.Fprintln(out, "    volumes "+strings.Join(words, ", "))
	}
	if s.refused != "" {
		fmt.Fprintln(out, "    refused: "+s.refused)
		s.refused = ""
	}
}
