package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree/deeptreetest"
	"github.com/stead-project/stead/spec"
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
		if again, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}); err != nil || again != path {
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
	if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}); err != nil {
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
		path, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}) // who is not root may not give to all
		if says := err != nil && strings.Contains(err.Error(), "invalid group id"); says != refused || err != nil && path != "" {
			t.Errorf("group %d: at %q, error %v", g, path, err)
		}
	}
}

// TestAlwaysLooksAtEachFile: fsGroupChangePolicy Always, whatever the top is; and links are changed
// themselves, not what they lead to.
func TestAlwaysLooksAtEachFile(t *testing.T) {
	own, g := os.Getegid(), group(t)
	for name, whole := range map[string]bool{"Always": true, "OnRootMismatch": false} {
		v := begin(t)
		path := ensure(t, v, true)
		if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}); err != nil {
			t.Fatal(err)
		}
		file, outside := filepath.Join(path, "late"), filepath.Join(t.TempDir(), "outside")
		write(t, file)
		write(t, outside)
		if err := errors.Join(os.Chown(file, -1, own), os.Chown(outside, -1, own), os.Symlink(outside, filepath.Join(path, "link"))); err != nil {
			t.Fatal(err)
		}
		progress := &runtime.GroupProgress{}
		if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g, Whole: whole, Progress: progress}); err != nil {
			t.Fatal(err)
		}
		gotGroup, mode := stat(t, file)
		if given := gotGroup == g && mode == 0o660; given != whole {
			t.Errorf("%s: the file has group %d, mode %v", name, gotGroup, mode)
		}
		if gotGroup, mode := stat(t, outside); gotGroup != int64(own) || mode != 0o600 {
			t.Errorf("%s: a link led outside", name)
		}
		if says := progress.Text(); (says != "") != whole || whole && !strings.HasSuffix(says, "default/db/data-0/data to the group of fsGroup: 2 files and directories so far") {
			t.Errorf("%s: progress %q", name, says)
		}
	}
}

// TestGivingThatIsBrokenOffBeginsAgain: by kill -9 or a stop, also where the top was the group's before.
func TestGivingThatIsBrokenOffBeginsAgain(t *testing.T) {
	g := group(t)
	for _, whole := range []bool{true, false} {
		root, dir := deeptreetest.Chain(t)
		top, file := filepath.Join(dir, "tree"), filepath.Join(dir, "tree/a/b/file")
		if whole { // else nothing would be given
			if err := errors.Join(os.Chown(top, -1, int(g)), os.Chmod(top, 0o775|fs.ModeSetgid)); err != nil {
				t.Fatal(err)
			}
		}
		tries := 0
		for err := context.DeadlineExceeded; err != nil; tries++ {
			if tries > 10 {
				t.Fatal(err)
			}
			err = giveTo(deeptreetest.Patience(t, tries), root, "tree", runtime.Group{ID: g, Whole: whole})
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if gotGroup, mode := stat(t, file); gotGroup != g || mode != 0o660 || tries < 2 {
			t.Errorf("whole %v: after %d tries the file has group %d, mode %v", whole, tries, gotGroup, mode)
		}
		if gotGroup, _ := stat(t, top); gotGroup != g {
			t.Errorf("whole %v: the top has group %d", whole, gotGroup)
		}
	}
}

// TestWhoSharesAVolumeDoesNotWaitUntilItIsGiven: a large volume of a claim.
func TestWhoSharesAVolumeDoesNotWaitUntilItIsGiven(t *testing.T) {
	v := begin(t)
	shared := data
	shared.Object, shared.Claim = true, "files"
	claim := spec.ClaimIdentity("default", "files")
	path, err := v.Ensure(t.Context(), claim, shared, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "file"))
	walking := deeptreetest.After(t, 1, func() error {
		_, err := v.Ensure(t.Context(), claim, shared, false, nil)
		return err
	})
	g := group(t)
	if _, err := v.Ensure(walking, claim, shared, false, &runtime.Group{ID: g}); err != nil {
		t.Fatal(err)
	}
}
