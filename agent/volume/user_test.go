package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var (
	files     = spec.ClaimIdentity("default", "shared.files")
	filesData = records.MemberVolume{Claim: "shared.files", ID: data.ID, Number: 1, Class: "local", Object: true}
)

func TestTheVolumeOfAClaimIsInADirectoryThatNoSetHas(t *testing.T) {
	dir := t.TempDir()
	v := at(t, dir, "cluster-1")
	path, err := v.Ensure(t.Context(), files, filesData, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/root/volumes/default/.claims/shared.files/data"; !strings.HasSuffix(path, want) {
		t.Errorf("it is at %s, want …%s", path, want)
	}
	write(t, filepath.Join(path, "file"))
	again, err := at(t, dir, "cluster-1").Ensure(t.Context(), files, filesData, true, nil)
	if err != nil || again != path {
		t.Errorf("found again at %s, error %v", again, err)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ensure(t.Context(), files, filesData, true, nil); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("one that is gone is made anew: %v", err)
	}
}

func TestMembersThatStartAtOnceMakeAClaimsVolumeOnce(t *testing.T) {
	v := begin(t)
	var group sync.WaitGroup
	paths := make([]string, 20)
	for i := range paths {
		group.Go(func() {
			path, err := v.Ensure(t.Context(), files, filesData, true, nil)
			if err != nil {
				t.Errorf("member %d: %v", i, err)
			}
			paths[i] = path
		})
	}
	group.Wait()
	paths = slices.Compact(paths)
	if len(paths) != 1 {
		t.Errorf("they have %v", paths)
	}
}

func TestANameThatIsNoClaimsIsNoDirectory(t *testing.T) {
	v := begin(t)
	for _, name := range []string{"", "..", "a/b", "../x", "A", "x..y"} {
		id := spec.ClaimIdentity("default", name)
		if path, err := v.Ensure(t.Context(), id, records.MemberVolume{Claim: spec.ClaimName(name), ID: data.ID, Class: "local", Object: true}, true, nil); err == nil {
			t.Errorf("%q is %s", name, path)
		}
	}
	if path, err := v.Ensure(t.Context(), files, records.MemberVolume{Claim: "other", ID: data.ID, Class: "local", Object: true}, true, nil); err == nil {
		t.Errorf("the volume of another claim is %s", path)
	}
}

func TestWhoHasAVolumeIsKnownToTheNextAgentUntilItIsErased(t *testing.T) {
	dir := t.TempDir()
	v := at(t, dir, "cluster-1")
	if _, err := v.Ensure(t.Context(), files, filesData, true, nil); err != nil {
		t.Fatal(err)
	}
	db1 := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
	for _, life := range []spec.LifeID{{ID: db1, Token: spec.Token{Epoch: 1, Number: 3}}, {ID: db0, Token: spec.Token{Epoch: 1, Number: 2}}, {ID: db0, Token: spec.Token{Epoch: 1, Number: 5}}} {
		if err := v.NoteUser(t.Context(), data.ID, life); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.NoteUser(t.Context(), "another", spec.LifeID{ID: db1, Token: spec.Token{Epoch: 1, Number: 3}}); err != nil {
		t.Fatal(err)
	}
	want := []spec.LifeID{{ID: db0, Token: spec.Token{Epoch: 1, Number: 5}}, {ID: db1, Token: spec.Token{Epoch: 1, Number: 3}}}
	v = at(t, dir, "cluster-1")
	if got, err := v.Users(t.Context(), data.ID); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	order := records.VolumeOrder{ID: files, Claim: filesData.Claim, Volume: data.ID, Number: 1, Class: "local", Fate: records.FateReclaiming}
	if err := v.Reclaim(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if trash, err := v.Trash(t.Context()); err != nil || len(trash) != 1 || trash[0].ID != files || trash[0].Claim != filesData.Claim {
		t.Errorf("the trash is %+v, %v", trash, err)
	}
	if err := v.Erase(t.Context(), "local", data.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Users(t.Context(), data.ID); err != nil || len(got) != 0 {
		t.Errorf("after it was erased: %v, %v", got, err)
	}
	if got, err := v.Users(t.Context(), "another"); err != nil || len(got) != 1 {
		t.Errorf("of another: %v, %v", got, err)
	}
}

func TestAUserThatCannotBeReadIsNotNobody(t *testing.T) {
	dir := t.TempDir()
	v := at(t, dir, "cluster-1")
	if err := v.NoteUser(t.Context(), data.ID, spec.LifeID{ID: db0, Token: spec.Token{Epoch: 1, Number: 2}}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "root", usersDir, userName(data.ID, db0)+".json")
	if err := os.WriteFile(name, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Users(t.Context(), data.ID); err == nil {
		t.Errorf("got %v", got)
	}
}
