package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/records/moves"
)

// Whichever write of a move finds the disk full says so, and leaves what was there as it was; with room the next try goes through.
func TestAMoveGoesOnWhenTheDiskHasRoomAgain(t *testing.T) {
	mounting(t)
	p, q := part(moves.MoveSource), part(moves.MoveTarget)
	for what, c := range map[string]struct {
		begin func(*lab)
		do    func(*Moves) error
	}{
		"note": {func(l *lab) { l.filled() }, func(m *Moves) error { return m.Note(t.Context(), p) }},
		"seal": {func(l *lab) { l.filled() }, func(m *Moves) error { return m.Seal(t.Context(), p) }},
		"unseal": {func(l *lab) {
			l.filled()
			if err := NewMoves(l.agent()).Seal(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}, func(m *Moves) error { return m.Unseal(t.Context(), p) }},
		"arrive": {func(l *lab) { staged(t, l, q) }, func(m *Moves) error { return m.Arrive(t.Context(), q) }},
	} {
		t.Run(what, func(t *testing.T) {
			free := 0
			for ; ; free++ {
				l := newLab(t)
				if err := unix.Mount("tmpfs", l.dir, "tmpfs", 0, "size=256k"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := unix.Unmount(l.dir, 0); err != nil {
						t.Error(err)
					}
				})
				c.begin(l)
				m := NewMoves(l.agent())
				filler := filepath.Join(l.dir, "filler")
				fillTo(t, filler, free)
				err := c.do(m)
				when := what + " with " + strconv.Itoa(free) + " pages"
				if err == nil {
					break
				}
				if !errors.Is(err, unix.ENOSPC) {
					t.Errorf("%s: %v", when, err)
				}
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
				if what == "note" || what == "seal" {
					l.whole(when)
				}
				if what == "arrive" {
					if d := lookAt(t, l.agent(), q); !d.Arrived && !d.Staged {
						t.Errorf("%s: on disk is %+v", when, d)
					}
				}
				if err := c.do(NewMoves(l.agent())); err != nil {
					t.Fatalf("%s, then with room: %v", when, err)
				}
				d := lookAt(t, l.agent(), p)
				switch what {
				case "seal":
					if !d.AllSealed {
						t.Errorf("%s: on disk is %+v", when, d)
					}
				case "unseal":
					l.whole(when)
				case "arrive":
					if d := lookAt(t, l.agent(), q); !d.AllArrived {
						t.Errorf("%s: on disk is %+v", when, d)
					}
				}
			}
			if free == 0 {
				t.Error("it wrote nothing")
			}
		})
	}
}

// fillTo leaves so many free pages on the disk of path.
func fillTo(t *testing.T, path string, pages int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4<<10))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err == nil {
		err = f.Truncate(st.Size() - int64(pages)<<12)
	}
	if err != nil {
		t.Fatal(err)
	}
}
