package volume

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A top that is as the group needs it tells that all below is: it is changed last.
func TestATreeIsGivenUnlessItsTopIsAsItShouldBe(t *testing.T) {
	own, g := int64(os.Getegid()), group(t)
	for name, c := range map[string]struct {
		group int64
		mode  fs.FileMode
		given bool
	}{
		"of another group":            {own, 0o775 | fs.ModeSetgid, own != g},
		"of the group, not writable":  {g, 0o755 | fs.ModeSetgid, true},
		"of the group, not inherited": {g, 0o775, true},
		"as it should be":             {g, 0o775 | fs.ModeSetgid, false},
		"open to all":                 {g, 0o777 | fs.ModeSetgid, false},
	} {
		v := begin(t)
		path := ensure(t, v, true)
		file := filepath.Join(path, "file")
		write(t, file)
		if err := os.Chown(path, -1, int(c.group)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if again, err := v.Ensure(t.Context(), db0, data, false, &g); err != nil || again != path {
			t.Errorf("%s: it is at %q, error %v", name, again, err)
		}
		if _, mode := stat(t, file); (mode == 0o660) != c.given {
			t.Errorf("%s: the file below has mode %v", name, mode)
		}
	}
}

// Of each file the group can read and write what it is given; nothing is taken from anybody.
func TestWhatIsGivenToAGroupKeepsItsOtherRights(t *testing.T) {
	own, g := os.Getegid(), group(t)
	v := begin(t)
	path := ensure(t, v, true)
	for _, c := range []struct {
		name       string
		group      int
		mode, want fs.FileMode
	}{
		{"of another group", own, 0o640, 0o660},
		{"of the group", int(g), 0o640, 0o660},
		{"as it should be", int(g), 0o664, 0o664},
		{"setgid", own, 0o770 | fs.ModeSetgid, 0o770 | fs.ModeSetgid}, // which a change of owner takes away
	} {
		file := filepath.Join(path, c.name)
		write(t, file)
		if err := os.Chown(file, -1, c.group); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if gotGroup, mode := stat(t, file); gotGroup != g || mode != c.want {
				t.Errorf("%s: group %d, mode %v, want %d, %v", c.name, gotGroup, mode, g, c.want)
			}
		}()
	}
	pipe := filepath.Join(path, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ensure(t.Context(), db0, data, false, &g); err != nil {
		t.Fatal(err)
	}
	if gotGroup, mode := stat(t, pipe); gotGroup != g || mode != 0o600 {
		t.Errorf("pipe: group %d, mode %v", gotGroup, mode)
	}
}

func TestAGroupThatIsNoneIsRefused(t *testing.T) {
	for g, refused := range map[int64]bool{-1: true, 0: false, 1<<31 - 1: false, 1 << 31: true, 1<<32 + 1: true} {
		v := begin(t)
		ensure(t, v, true)
		path, err := v.Ensure(t.Context(), db0, data, false, &g) // who is not root may not give to all
		if says := err != nil && strings.Contains(err.Error(), "invalid group id"); says != refused || err != nil && path != "" {
			t.Errorf("group %d: at %q, error %v", g, path, err)
		}
	}
}
