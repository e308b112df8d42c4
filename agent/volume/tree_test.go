package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree/deeptreetest"
)

// A file that somebody deletes while its tree is given to a group is no error.
func TestWhatGoesMeanwhileIsGivenToNoGroup(t *testing.T) {
	for n, gone := range map[int]string{1: "tree/a", 2: "tree/a/b", 3: "tree/a/b"} {
		root, dir := deeptreetest.Chain(t)
		err := giveTo(deeptreetest.After(t, n, func() error { return os.RemoveAll(filepath.Join(dir, gone)) }), root, "tree", runtime.Group{ID: group(t)})
		if _, there := os.Lstat(filepath.Join(dir, "tree")); err != nil || there != nil {
			t.Errorf("given while %s goes: %v; then: %v", gone, err, there)
		}
	}
}
