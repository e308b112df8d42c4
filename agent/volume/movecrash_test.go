package volume

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
)

// logs is a second volume of db-0, which moves with the first.
var logs = records.MemberVolume{Claim: "logs", ID: "1111222233334444111122223333aaaa", Number: 1, Class: data.Class}

func twoVolumes(role moves.MoveRole) runtime.MovePart {
	p := part(role)
	p.Claims = append(p.Claims, moves.MoveClaim{
		Claim: logs.Claim, Old: string(logs.ID), New: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", Number: logs.Number, Class: logs.Class,
	})
	return p
}

// died is what a killed process panics with in these tests: unlike an error it lets nothing be cleaned up.
type died struct{}

// killed has an agent do something and end before or after the nth time that it puts something on disk, or takes a step: so
// between any two things that it changes. What it does not reach is done: false. flushed are the names of what was put on disk.
func (l *lab) killed(n int, onDisk cut, do func(*Moves) error) (flushed []string, reached bool, err error) {
	l.t.Helper()
	count := 0
	die := func() {
		count++
		if count == n {
			panic(died{})
		}
	}
	v := l.agent()
	v.step = func(string) error { die(); return nil }
	flush := func(f *os.File) error {
		die()
		onDisk.flush(l.t, f)
		flushed = append(flushed, filepath.Base(f.Name()))
		die()
		return nil
	}
	v.writer.Sync, v.records.writer.Sync = flush, flush
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(died); !is {
				panic(r)
			}
			reached, err = true, nil
		}
	}()
	err = do(NewMoves(v))
	return flushed, false, err
}

// usable reports which of both volumes a life could have now; an error that does not say that it is sealed ends the test.
func (l *lab) usable(when string) (list []string) {
	l.t.Helper()
	for _, vol := range []records.MemberVolume{data, logs} {
		path, err := l.agent().Ensure(l.t.Context(), db0, vol, false, nil)
		switch {
		case err == nil:
			list = append(list, string(vol.Claim))
			if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
				l.t.Errorf("%s: volume %s holds %q, %v", when, vol.Claim, got, err)
			}
		case !errors.Is(err, runtime.ErrSealed):
			l.t.Errorf("%s: volume %s: %v", when, vol.Claim, err)
		}
	}
	return list
}

// Wherever an agent is killed, what it leaves is sealed or not, each volume for itself; the next one goes on, and then all is as it was
// to be, on disk.
func TestAMoveGoesOnWhereverTheAgentIsKilled(t *testing.T) {
	p, q := twoVolumes(moves.MoveSource), twoVolumes(moves.MoveTarget)
	source := func(l *lab) {
		for _, vol := range []records.MemberVolume{data, logs} {
			path, err := l.agent().Ensure(t.Context(), db0, vol, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(path, "file"))
		}
	}
	sealed := func(l *lab) {
		source(l)
		if err := NewMoves(l.agent()).Seal(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	copied := func(l *lab) {
		trees, err := NewMoves(l.agent()).Stage(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range trees {
			if err := os.MkdirAll(filepath.Join(one.Path, "a/b"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(one.Path, "a/b/file"))
		}
	}
	both := []string{"data", "logs"}
	for what, c := range map[string]struct {
		begin func(*lab)
		do    func(*Moves) error
		least int // how often it can be killed
		then  func(l *lab, when string)
	}{
		"seal": {source, func(m *Moves) error { return m.Seal(t.Context(), p) }, 10, func(l *lab, when string) {
			if d := lookAt(t, l.agent(), p); !d.Sealed || !d.AllSealed || len(l.usable(when)) > 0 {
				t.Errorf("%s: on disk is %+v, and a life could have %q", when, d, l.usable(when))
			}
		}},
		"unseal": {sealed, func(m *Moves) error { return m.Unseal(t.Context(), p) }, 10, func(l *lab, when string) {
			if d := lookAt(t, l.agent(), p); d.Sealed || !slices.Equal(l.usable(when), both) {
				t.Errorf("%s: on disk is %+v, and a life could have %q", when, d, l.usable(when))
			}
		}},
		"discard": {copied, func(m *Moves) error { return m.Discard(t.Context(), q) }, 4, func(l *lab, when string) {
			if d := lookAt(t, l.agent(), q); !reflect.DeepEqual(d, runtime.MoveDisk{Missing: true}) {
				t.Errorf("%s: on disk is %+v", when, d)
			}
			if left := below(t, filepath.Join(l.dir, "root/volumes", movingDir)); len(left) > 1 {
				t.Errorf("%s: left is %q", when, left)
			}
		}},
		"stage": {func(l *lab) { l.agent() }, func(m *Moves) error { _, err := m.Stage(t.Context(), q); return err }, 10, func(l *lab, when string) {
			if d := lookAt(t, l.agent(), q); !d.Staged || d.Arrived {
				t.Errorf("%s: on disk is %+v", when, d)
			}
		}},
		"arrive": {copied, func(m *Moves) error { return m.Arrive(t.Context(), q) }, 30, func(l *lab, when string) {
			if d := lookAt(t, l.agent(), q); !d.AllArrived || d.Staged {
				t.Errorf("%s: on disk is %+v", when, d)
			}
			for _, c := range q.Claims {
				vol := records.MemberVolume{Claim: c.Claim, ID: records.VolumeID(c.New), Number: c.Number, Class: c.Class}
				path, err := l.agent().Ensure(t.Context(), db0, vol, false, nil)
				if got, err2 := os.ReadFile(filepath.Join(path, "a/b/file")); err != nil || string(got) != "precious" {
					t.Errorf("%s: %q, %v", when, got, errors.Join(err, err2))
				}
			}
		}},
		"note": {source, func(m *Moves) error { return m.Note(t.Context(), p) }, 4, func(l *lab, when string) {
			if got, err := NewMoves(l.agent()).Parts(t.Context()); err != nil || len(got) != 1 || got[0].Move != p.Move {
				t.Errorf("%s: noted is %+v, %v", when, got, err)
			}
		}},
		"forget": {func(l *lab) {
			if err := NewMoves(l.agent()).Note(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}, func(m *Moves) error { return m.Forget(t.Context(), p) }, 2, func(l *lab, when string) {
			if got, err := NewMoves(l.agent()).Parts(t.Context()); err != nil || len(got) > 0 {
				t.Errorf("%s: noted is %+v, %v", when, got, err)
			}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			n := 1
			for ; ; n++ {
				l := newLab(t)
				c.begin(l)
				onDisk := l.onDisk()
				_, reached, err := l.killed(n, onDisk, c.do)
				if !reached {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				when := what + ", killed at " + strconv.Itoa(n)
				switch what {
				case "seal", "unseal":
					l.usable(when)
					if d := lookAt(t, l.agent(), p); d.Sealed == (len(l.usable(when)) == 2) {
						t.Errorf("%s: on disk is %+v, and a life could have %q", when, d, l.usable(when))
					}
				case "arrive":
					if d := lookAt(t, l.agent(), q); !d.Arrived && !d.Staged {
						t.Errorf("%s: on disk is %+v", when, d)
					}
				case "note", "forget":
					if _, err := NewMoves(l.agent()).Parts(t.Context()); err != nil {
						t.Errorf("%s: what is noted cannot be read: %v", when, err)
					}
				}
				flushed, _, err := l.killed(0, onDisk, c.do)
				if err != nil {
					t.Fatalf("%s, then: %v", when, err)
				}
				if sealing := what == "seal" || what == "unseal"; sealing && !(slices.Contains(flushed, "data-0") && slices.Contains(flushed, "logs-0")) {
					t.Errorf("%s: the next one put %q on disk: what the first renamed there may not be", when, flushed)
				}
				c.then(l, when)
				if diff := onDisk.missing(l); len(diff) > 0 {
					t.Errorf("%s: never put on disk: %q", when, diff)
				}
			}
			if n-1 < c.least {
				t.Errorf("it was killed at %d places, want %d", n-1, c.least)
			}
		})
	}
}
