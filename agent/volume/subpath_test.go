package volume

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
