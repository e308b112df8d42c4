package volume

import (
	"os"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestNamesThatAreNoPathElementsAreRefused(t *testing.T) {
	v := begin(t)
	for _, id := range []spec.Identity{
		{Namespace: "..", Set: "db"}, {Namespace: "a/b", Set: "db"}, {Namespace: "", Set: "db"},
		{Namespace: "default", Set: "."}, {Namespace: "default", Set: "db", Ordinal: -1},
		{Namespace: "default", Set: "a:b"}, {Namespace: "default", Set: "a{b"}, {Namespace: "default", Set: "DB"},
		{Namespace: "default", Set: "a`b"}, {Namespace: "default", Set: spec.SetName(strings.Repeat("a", 64))},
	} {
		if _, err := v.Ensure(t.Context(), id, data, true, nil); err == nil {
			t.Errorf("volume of %v was made", id)
		}
		if _, err := v.Scratch(t.Context(), runtime.Scratch{ID: id, Token: spec.Token{Number: 1}, Name: "tmp"}); err == nil {
			t.Errorf("scratch of %v was made", id)
		}
		if err := v.RemoveScratch(t.Context(), id); err == nil {
			t.Errorf("scratch of %v was removed", id)
		}
	}
	if _, err := v.Ensure(t.Context(), db0, records.MemberVolume{Claim: "../x", ID: "1"}, true, nil); err == nil {
		t.Error("claim ../x was made")
	}
	id := spec.Identity{Namespace: "a-z", Set: spec.SetName("0-9" + strings.Repeat("a", 60))}
	if _, err := v.Ensure(t.Context(), id, data, true, nil); err != nil {
		t.Errorf("volume of %v: %v", id, err)
	}
}

func TestVolumesNeedToKnowWhereAndOfWhichCluster(t *testing.T) {
	for name, c := range map[string]Config{
		"no root":          {RunDir: t.TempDir(), ClusterID: "cluster-1"},
		"no run directory": {Root: t.TempDir(), ClusterID: "cluster-1"},
		"no cluster":       {Root: t.TempDir(), RunDir: t.TempDir()},
	} {
		t.Chdir(t.TempDir()) // where a path that is none would be
		if _, err := New(c); err == nil {
			t.Errorf("%s: volumes were made", name)
		}
		if found, err := os.ReadDir("."); err != nil || len(found) > 0 {
			t.Errorf("%s: %v was made where it runs, error %v", name, found, err)
		}
	}
}
