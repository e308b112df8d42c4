package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/store"
)

func TestStatusShowsAllOnOneScreen(t *testing.T) { newCluster(t, nil).play("status.txt") }

// fullStore is one whose quota is used up.
type fullStore struct{ store.Store }

func (f fullStore) Status(ctx context.Context) (store.Status, error) {
	st, err := f.Store.Status(ctx)
	st.QuotaBytes, st.Alarm = 8<<20, "memberID:1 alarm:NOSPACE"
	return st, err
}

func TestStatusNamesAFullStoreAndWhatHealsIt(t *testing.T) {
	c := newCluster(t, func(s store.Store) store.Store { return fullStore{s} })
	code, out := c.stead("status")
	for _, want := range []string{"of 8Mi used", "alarm    NOSPACE: the store is full", "Delete ConfigMaps", "--store-quota-bytes"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in:\n%s", code, want, out)
		}
	}
}

func TestStatusSaysWhichSetsAreNotHealthyAndWhy(t *testing.T) {
	c := newCluster(t, nil)
	c.host.OnPull(func(ref, _ string) error { return runtime.ErrImageMissing })
	if code, out := c.stead("apply", "-f", "testdata/db.yaml"); code != exitDone {
		t.Fatal(out)
	}
	var out string
	c.until("status says what db-0 lacks", func() bool {
		_, out = c.stead("status")
		return strings.Contains(out, "ImageMissing")
	})
	if strings.Contains(out, "AsExpected") {
		t.Errorf("it shows what is healthy:\n%s", out)
	}
	for _, want := range []string{"sets     0 of 1 are healthy", "default/db: 0 of 3 ready", "Progressing: ImageMissing", "  db-0 ", "  db-2         waiting for db-0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
