package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
)

// watchDisk has a call of v tell which files and directories it put on disk, in order, as
// paths below the agent's root. look, if any, is called before each.
func watchDisk(t *testing.T, v *Volumes, look func(path string)) *[]string {
	t.Helper()
	var done []string
	flush := func(f *os.File) error {
		path, err := filepath.Rel(v.records.root, f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if look != nil {
			look(path)
		}
		done = append(done, path)
		return f.Sync()
	}
	v.writer.Sync, v.records.writer.Sync = flush, flush
	return &done
}

var toTrash = records.VolumeOrder{ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class}

const dbDir = "volumes/default/db"

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAVolumeThatIsGivenUpOrBroughtBackIsOnDiskThere(t *testing.T) {
	v := begin(t)
	place := filepath.Dir(ensure(t, v, true))
	bin := filepath.Join(v.classes["local"], trashDir, string(data.ID))
	if err := v.Reclaim(t.Context(), toTrash); err != nil { // makes the trash, too
		t.Fatal(err)
	}
	if err := v.Restore(t.Context(), toTrash); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what string
		do   func() error
		to   string
	}{
		{"given up", func() error { return v.Reclaim(t.Context(), toTrash) }, bin},
		{"given up again, as after a crash", func() error { return v.Reclaim(t.Context(), toTrash) }, bin},
		{"brought back", func() error { return v.Restore(t.Context(), toTrash) }, place},
		{"brought back again, as after a crash", func() error { return v.Restore(t.Context(), toTrash) }, place},
	} {
		after, noteless := map[string]bool{}, false
		watchDisk(t, v, func(path string) {
			if exists(step.to) {
				after[path] = true
			}
			noteless = path == dbDir+"/data-0" && !exists(filepath.Join(place, noteFile))
		})
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		for _, dir := range []string{"volumes/" + trashDir, dbDir} {
			if !after[dir] {
				t.Errorf("%s: %s was not put on disk after the move; only %v", step.what, dir, after)
			}
		}
		if step.to == place && !noteless {
			t.Errorf("%s: that the note of the trash is gone was not put on disk at last", step.what)
		}
	}
	v.writer.Sync = func(*os.File) error { return errors.New("the disk is gone") }
	if err := v.Reclaim(t.Context(), toTrash); err == nil {
		t.Error("it counts as given up, and is not on disk")
	}
}

func TestANewVolumeIsOnDiskBeforeItIsHandedOut(t *testing.T) {
	v := begin(t)
	if _, err := v.Trash(t.Context()); err != nil { // marks the disk
		t.Fatal(err)
	}
	done := watchDisk(t, v, func(path string) {
		if path == madeDir+"/"+string(data.ID)+".json.new" && !exists(filepath.Join(v.records.root, dbDir, "data-0/data")) {
			t.Error("it is noted as made before it is made: a crash would leave it missing")
		}
	})
	ensure(t, v, true)
	want := []string{
		madeDir,                             // what was noted of it before, by whom that may have died
		"volumes", "volumes/default", dbDir, // the names of the directories
		dbDir + "/data-0/" + ownerDraft, dbDir + "/data-0", // whose it is
		dbDir + "/data-0", // the name of its data
		madeDir + "/" + string(data.ID) + ".json.new", madeDir, // that it was made
	}
	if !slices.Equal(*done, want) {
		t.Errorf("put on disk:\n got %q\nwant %q", *done, want)
	}
	*done = nil
	ensure(t, v, false)
	if len(*done) > 0 {
		t.Errorf("found again: %q was put on disk", *done)
	}
}

func TestTheMarkOfADiskIsOnDiskBeforeItIsNoted(t *testing.T) {
	v := begin(t)
	noted := filepath.Join(v.records.root, disksDir, "local.json")
	synced := false
	done := watchDisk(t, v, func(path string) {
		synced = synced || path == "volumes"
		if filepath.Dir(path) == disksDir && (!synced || exists(noted)) {
			t.Error("the disk is noted before its mark is on it")
		}
	})
	if _, err := v.Trash(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(*done); n < 4 || (*done)[n-1] != disksDir {
		t.Errorf("put on disk: %q", *done)
	}
}

func TestAnErasureIsOnDiskBeforeTheRecordGoes(t *testing.T) {
	v := begin(t)
	ensure(t, v, true)
	if err := v.Reclaim(t.Context(), toTrash); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(v.records.root, madeDir, string(data.ID)+".json")
	done := watchDisk(t, v, func(path string) {
		if path == "volumes/"+trashDir && !exists(record) {
			t.Error("the record is gone, and what it is of may come back")
		}
	})
	if err := v.Erase(t.Context(), data.Class, data.ID); err != nil {
		t.Fatal(err)
	}
	if want := []string{"volumes/" + trashDir, madeDir}; !slices.Equal(*done, want) {
		t.Errorf("put on disk %q, want %q", *done, want)
	}
}
