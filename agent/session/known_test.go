package session

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestTheDiskIsWrittenOnlyWhenSomethingIsNewAndNotEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := Disk(t.TempDir())
		path := filepath.Join(string(dir), knownFile)
		k := OpenKnown(dir, slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		ctx := t.Context()
		go func() { defer close(done); k.Run(ctx) }()
		writes := 0
		var last os.FileInfo
		for i := range int64(100) { // ten seconds
			k.Add(records.Known{At: spec.Sequence{Epoch: 1, Rev: 1 + i}})
			time.Sleep(100 * time.Millisecond)
			if now, err := os.Stat(path); err == nil && (last == nil || !os.SameFile(last, now)) {
				last, writes = now, writes+1
			}
		}
		if writes < 9 || writes > 11 {
			t.Errorf("in ten seconds of change it was written %d times", writes)
		}
		time.Sleep(2 * time.Second)
		before, err := os.Stat(path)
		must(t, err)
		k.Add(records.Known{At: spec.Sequence{Epoch: 1, Rev: 50}})
		time.Sleep(time.Minute)
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) || after.Mode().Perm() != 0o600 {
			t.Errorf("nothing was new, and it was written; %v, %v", after, err)
		}
	})
}

func TestADamagedMemoryStopsNoNode(t *testing.T) {
	dir := Disk(t.TempDir())
	path := filepath.Join(string(dir), knownFile)
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	k := OpenKnown(dir, slog.New(slog.DiscardHandler))
	if got := k.Now(); got.At != (spec.Sequence{}) {
		t.Errorf("it knows %+v", got)
	}
	k.Add(records.Known{At: spec.Sequence{Epoch: 1, Rev: 5}})
	must(t, k.Save())
	if got := OpenKnown(dir, slog.New(slog.DiscardHandler)).Now(); got.At.Rev != 5 {
		t.Errorf("it knows %+v", got)
	}
}
