package volume

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

// What a disk brings along in its trash, or somebody put there, is not this node's: it is
// neither told nor erased, and what cannot be told apart is told as unknown.
func TestWhatIsNotOursInTheTrashIsLeft(t *testing.T) {
	good := owner{Cluster: "cluster-1", Namespace: "default", Set: "db", Claim: "data", Volume: data.ID, Number: 1}
	of := func(change func(*owner)) string {
		o := good
		change(&o)
		content, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	for name, c := range map[string]struct {
		owner, note string
		unknown     bool
		refusal     error // of an erasure, nil: any
	}{
		"of another cluster":      {owner: of(func(o *owner) { o.Cluster = "cluster-2" }), refusal: runtime.ErrForeign},
		"of another id":           {owner: of(func(o *owner) { o.Volume = "fedcba9876543210fedcba9876543210" }), refusal: runtime.ErrForeign},
		"damaged":                 {owner: `{"cluster":"cluster-1","volume":"` + string(data.ID) + `","number":"x"}`, unknown: true, refusal: runtime.ErrForeign},
		"no owner file":           {unknown: true, refusal: runtime.ErrForeign},
		"no note of its time":     {owner: of(func(*owner) {}), note: "none", unknown: true},
		"a damaged note":          {owner: of(func(*owner) {}), note: `{"left":"x"}`, unknown: true},
		"a note that ends within": {owner: of(func(*owner) {}), note: `{"left":0`, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.trashed()
			for file, content := range map[string]string{ownerFile: c.owner, noteFile: c.note} {
				path := filepath.Join(l.bin(), file)
				err := os.Remove(path)
				if file == noteFile && content == "" {
					content = `{"left":0}`
				}
				if content != "" && content != "none" {
					err = os.WriteFile(path, []byte(content), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if found, err := l.agent().Trash(t.Context()); len(found) > 0 || (err != nil) != c.unknown {
				t.Errorf("the trash lists %v, error %v", found, err)
			}
			if err := l.agent().Erase(t.Context(), "local", data.ID); err == nil || c.refusal != nil && !errors.Is(err, c.refusal) {
				t.Errorf("erased: %v, want %v", err, c.refusal)
			}
			if _, err := os.Stat(filepath.Join(l.bin(), "data/file")); err != nil {
				t.Errorf("it was touched: %v", err)
			}
		})
	}
}
