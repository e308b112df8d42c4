package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// editInPlace changes what can change in place, or whether it does.
func editInPlace(t testing.TB, s *spec.SetSpec, words []string) {
	t.Helper()
	if words[0] == "inPlace" {
		s.UpdateStrategy.InPlace = nil
		for _, w := range words[1:] {
			s.UpdateStrategy.InPlace = append(s.UpdateStrategy.InPlace, changes.Kind(w))
		}
		return
	}
	if len(s.Template.Spec.Containers) == 0 {
		s.Template.Spec.Containers = []spec.Container{{Name: "main", ImagePullPolicy: spec.PullIfNotPresent}}
	}
	c := &s.Template.Spec.Containers[0]
	if words[0] == "image" {
		c.Image = words[1]
		return
	}
	limit, request, given := strings.Cut(words[1], "/")
	if !given {
		request = limit
	}
	of := func(text string) map[string]scalar.Quantity {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]scalar.Quantity{"memory": {Milli: n << 20 * 1000}}
	}
	c.Resources = spec.ResourceRequirements{Limits: of(limit), Requests: of(request)}
}

// saidOfChanges is an action in words.
func saidOfChanges(a Action) string {
	switch a := a.(type) {
	case ChangeInPlace:
		return fmt.Sprintf("%s changes in place to %s", a.ID.MemberName(), a.Change.Revision)
	case Promote:
		if a.Changed != (spec.Sequence{}) {
			return fmt.Sprintf("%s has changed to %s", a.ID.MemberName(), a.Revision)
		}
		return fmt.Sprintf("%s reaches %s without a restart", a.ID.MemberName(), a.Revision)
	}
	return ""
}

// change has the node of a life carry out what changes in place, and keep what came of it as long as the life lasts.
func (s *stage) change(m *records.Member, old *records.Report, r *records.Report) {
	if old != nil && old.Token == m.Token {
		r.Change = old.Change
	}
	if m.Change == nil || r.Phase != records.PhaseRunning || m.Change.ID.Compare(r.Change.ID) < 0 {
		return
	}
	how := s.bad[m.ID.MemberName()]
	if how == "" || how == "recovers" {
		how = s.bad[string(m.Change.Revision)]
	}
	r.Change = inplace.ChangeResult{ID: m.Change.ID, Revision: m.Change.Revision}
	switch how {
	case "dawdles":
	case "refuses":
		r.Change.Refused = "more memory is in use"
	case "lacks-image":
		r.Cause, r.Message = causes.ImagePull, "no such host"
	case "crashes":
		r.Change.Done, r.Ready, r.ReadyFor, r.Cause, r.Message = true, false, 0, causes.CrashLoop, "exited with code 1"
	default:
		r.Change.Done = true
	}
}
