package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// TestASourceNamesWhatItHasNot: of two volumes, sealed or not, the one that is not in its place is absent, however it went; what cannot be
// looked at is an error, and not absent.
func TestASourceNamesWhatItHasNot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *lab)
		absent []spec.ClaimName
		sealed bool
		failed bool
	}{
		"both are there":                   {change: func(*lab) {}, sealed: true},
		"its directory is gone":            {change: func(l *lab) { must(l.t, os.RemoveAll(l.place())) }, absent: []spec.ClaimName{"data"}, sealed: true},
		"what was in it is gone":           {change: func(l *lab) { must(l.t, os.RemoveAll(filepath.Join(l.place(), dataDir))) }, absent: []spec.ClaimName{"data"}, sealed: true},
		"its owner file is gone":           {change: func(l *lab) { must(l.t, os.Remove(filepath.Join(l.place(), ownerFile))) }, failed: true},
		"it is in the trash":               {change: func(l *lab) { must(l.t, l.agent().Reclaim(l.t.Context(), giveUp)) }, absent: []spec.ClaimName{"data"}, sealed: true},
		"all is gone, as with a new disk":  {change: func(l *lab) { must(l.t, os.RemoveAll(filepath.Dir(l.place()))) }, absent: []spec.ClaimName{"data", "logs"}},
		"something else is in its place":   {change: func(l *lab) { must(l.t, os.WriteFile(filepath.Join(l.place(), imageFile), nil, 0o600)) }, failed: true},
		"its owner file cannot be read":    {change: func(l *lab) { must(l.t, os.WriteFile(filepath.Join(l.place(), ownerFile), []byte("x"), 0o600)) }, failed: true},
		"another's volume is in its place": {change: func(l *lab) { l.otherOwner() }, absent: []spec.ClaimName{"data"}, sealed: true},
	} {
		for _, seals := range []bool{true, false} {
			l, p := newLab(t), twoVolumes(moves.MoveSource)
			l.filled()
			if _, err := l.agent().Ensure(t.Context(), db0, logs, true, nil); err != nil {
				t.Fatal(err)
			}
			if seals {
				must(t, NewMoves(l.agent()).Seal(t.Context(), p))
			}
			c.change(l)
			d, err := NewMoves(l.agent()).Look(t.Context(), p)
			if (err != nil) != c.failed {
				t.Errorf("%s: error %v", name, err)
			}
			if want := c.sealed && seals; err == nil && (!slices.Equal(d.Absent, c.absent) || d.Sealed != want) {
				t.Errorf("%s, sealed %v: it says %+v; want absent %v, sealed %v", name, seals, d, c.absent, want)
			}
			if len(c.absent) > 0 {
				if err := NewMoves(l.agent()).Seal(t.Context(), p); !errors.Is(err, runtime.ErrAbsent) && !errors.Is(err, runtime.ErrForeign) {
					t.Errorf("%s: it is sealed all the same: %v", name, err)
				}
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// otherOwner has the volume in the place be another's.
func (l *lab) otherOwner() {
	other := data
	other.ID = newID
	must(l.t, os.RemoveAll(l.place()))
	if _, err := l.agent().Ensure(l.t.Context(), db0, other, true, nil); err != nil {
		l.t.Fatal(err)
	}
}
