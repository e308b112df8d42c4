package containerdrt

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

func TestTheHostsUseIsThatOfKubernetes(t *testing.T) {
	proc := t.TempDir()
	for name, text := range map[string]string{
		"stat":    "cpu  100 20 30 9999 888 4 5 6 77 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
		"meminfo": "MemTotal:        1000 kB\nMemFree:          300 kB\nInactive(file):   200 kB\nHugePages_Total:       0\n",
	} {
		if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := hostUsed(proc)
	if want := (runtime.Used{CPU: 1650 * time.Millisecond, MemoryBytes: 500 << 10}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestACgroupsNameIsReadBack(t *testing.T) {
	id := spec.Identity{Namespace: "prod-a", Set: "my-db", Ordinal: 12}
	if got, ok := memberOf(memberDir(id)); !ok || got != id {
		t.Errorf("got %v, %v, want %v", got, ok, id)
	}
	for _, dir := range []string{"watchdog", "default.", "default.x", ".db-0"} {
		if got, ok := memberOf(dir); ok {
			t.Errorf("%q: got %v", dir, got)
		}
	}
}
