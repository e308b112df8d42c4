package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
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

func TestStatusSaysWhichNodeHasNoAddress(t *testing.T) {
	node := func(name, address string) *proto.Object {
		doc := fmt.Sprintf(`{"status":{"name":%q,"hostIP":%q,"state":"Ready"}}`, name, address)
		return &proto.Object{Name: name, Json: []byte(doc)}
	}
	for _, c := range []struct {
		nodes []*proto.Object
		want  bool
	}{
		{[]*proto.Object{node("n1", "10.0.0.1"), node("n2", "")}, true},
		{[]*proto.Object{node("n1", "10.0.0.1"), node("n2", "10.0.0.2")}, false},
		{[]*proto.Object{node("n1", "")}, false}, // nobody is to reach it
	} {
		var out strings.Builder
		if err := printNodes(&out, c.nodes); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "n2 has several addresses, or none"); got != c.want || strings.Contains(out.String(), "n1 has") {
			t.Errorf("got\n%s", out.String())
		}
	}
}
