package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

func TestHugePagesAreWhatTheKernelHasSetApart(t *testing.T) {
	dir := t.TempDir()
	if pages, bytes, err := hugePages(filepath.Join(dir, "none")); pages != (scalar.HugePages{}) || bytes != 0 || err != nil {
		t.Errorf("a kernel without them: %+v, %d, %v", pages, bytes, err)
	}
	for name, count := range map[string]string{"hugepages-2048kB": "3\n", "hugepages-1048576kB": "1\n", "hugepages-64kB": "16\n"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "nr_hugepages"), []byte(count), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pages, bytes, err := hugePages(dir)
	if want := (scalar.HugePages{Of2Mi: 6 << 20, Of1Gi: 1 << 30}); pages != want || bytes != 6<<20+1<<30+1<<20 || err != nil {
		t.Errorf("got %+v, %d, %v", pages, bytes, err)
	}
}
