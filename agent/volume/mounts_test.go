package volume

import (
	"slices"
	"testing"
)

func TestParseMounts(t *testing.T) {
	table := `25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw
60 30 0:50 / /run/a rw - tmpfs tmpfs rw
61 60 0:51 / /run/a/b\040c rw - tmpfs tmpfs rw
62 60 0:52 / /run/a/b\040c rw - tmpfs  rw
63 30 0:53 / /run/ab rw - tmpfs tmpfs rw
`
	got, err := parseMounts(table, "/run/a")
	if want := []string{"/run/a/b c", "/run/a/b c", "/run/a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	for _, unknown := range []string{"what is this\n", "60 30 0:50 / /run/a - tmpfs tmpfs rw\n"} {
		if got, err := parseMounts(table+unknown, "/run/a"); err == nil {
			t.Errorf("%q: an unknown table was read as %q", unknown, got)
		}
	}
}

func TestWhatIsMountedNearestIsSaid(t *testing.T) {
	const table = `what is this
70 25 8:16 / /mnt rw - xfs /dev/sdb rw
71 70 8:32 / /mnt rw - ext4 /dev/sdc rw
72 71 0:40 / /mnt/a\040b\043\134040 rw shared:9 - cifs //nas/my\040disk rw
73 25 0:41 / /run rw - tmpfs  rw
25 1 8:1 / / rw - btrfs /dev/sda1 rw
`
	for path, want := range map[string]string{
		"/":                  " (btrfs /dev/sda1, mounted at /)",
		"/mntx/y":            " (btrfs /dev/sda1, mounted at /)",
		"/mnt":               " (ext4 /dev/sdc, mounted at /mnt)", // it hides the other one
		"/mnt/x":             " (ext4 /dev/sdc, mounted at /mnt)",
		"/run/x":             " (tmpfs , mounted at /run)",
		`/mnt/a b#\040/data`: ` (cifs //nas/my disk, mounted at /mnt/a b#\040)`,
	} {
		if got := mountAbove(table, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := mountAbove("what is this\n", "/mnt"); got != "" {
		t.Errorf("of an unknown table: %q", got)
	}
}
