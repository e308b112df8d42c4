package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAPathIsResolvedAnewWhileSomethingIsRenamed(t *testing.T) {
	for name, c := range map[string]struct {
		says []error // one a try; the last one goes on
		want error
		most int
	}{
		"found":                 {says: []error{nil}, most: 1},
		"found after a while":   {says: []error{unix.EAGAIN, unix.EINTR, unix.EAGAIN, nil}, most: 4},
		"refused":               {says: []error{unix.EXDEV}, want: unix.EXDEV, most: 1},
		"refused after a while": {says: []error{unix.EINTR, unix.EXDEV}, want: unix.EXDEV, most: 2},
		"renamed without end":   {says: []error{unix.EAGAIN}, want: unix.EAGAIN, most: resolveTries},
	} {
		tries := 0
		err := retryRenamed(func() error {
			tries++
			return c.says[min(tries, len(c.says))-1]
		})
		if !errors.Is(err, c.want) || tries != c.most {
			t.Errorf("%s: got %v after %d tries, want %v after %d", name, err, tries, c.want, c.most)
		}
	}
}

// A mount point is made empty; what is not was never one, and is nobody's to delete.
func TestOnlyWhatIsEmptyGoesWithAMount(t *testing.T) {
	top := t.TempDir()
	for _, d := range []string{"db-0/main/1", "db-0/other", "db-1"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeTarget(filepath.Join(top, "db-0/main/2"), false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeMounts(top, "db-0"); err != nil {
			t.Error(err)
		}
	}
	if got, want := below(t, top), []string{top, filepath.Join(top, "db-1")}; !slices.Equal(got, want) {
		t.Errorf("left: %q, want %q", got, want)
	}
	file := filepath.Join(top, "db-1/file")
	write(t, file)
	if err := removeMounts(top, "db-1"); err == nil || !strings.Contains(err.Error(), "not empty; it was left") {
		t.Errorf("got %v", err)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "precious" {
		t.Errorf("it holds %q, error %v", content, err)
	}
}
