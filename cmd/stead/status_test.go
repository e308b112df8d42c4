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
	node := func(name, address, more string) *proto.Object {
		doc := fmt.Sprintf(`{"status":{"name":%q,"hostIP":%q,"state":"Ready"%s}}`, name, address, more)
		return &proto.Object{Name: name, Json: []byte(doc)}
	}
	const several = `,"hostIPs":["10.0.0.2","10.1.0.2"]`
	const choice = "those of n2: it has several addresses (10.0.0.2, 10.1.0.2): start its agent with the one that other hosts reach, for example --address 10.0.0.2"
	for _, c := range []struct {
		nodes []*proto.Object
		want  string // "": nothing is said
	}{
		{[]*proto.Object{node("n1", "10.0.0.1", ""), node("n2", "", "")}, "those of n2: it has several addresses, or none: start its agent with --address"},
		{[]*proto.Object{node("n1", "10.0.0.1", ""), node("n2", "", several)}, choice},
		{[]*proto.Object{node("n2", "", several)}, choice},
		{[]*proto.Object{node("n1", "10.0.0.1", ""), node("n2", "10.0.0.2", "")}, ""},
		{[]*proto.Object{node("n2", "10.0.0.2", several)}, ""},
		{[]*proto.Object{node("n1", "", "")}, ""}, // nobody is to reach it
	} {
		var out strings.Builder
		if err := printNodes(&out, c.nodes, ""); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(out.String(), "addresses"); said != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("want %q, got\n%s", c.want, out.String())
		}
	}
}

func TestStatusNamesNodesWithoutWireGuard(t *testing.T) {
	node := func(name, tunnel string) *proto.Object {
		return &proto.Object{Name: name, Json: fmt.Appendf(nil, `{"status":{"name":%q,"hostIP":"10.0.0.1","state":"Ready"%s}}`, name, tunnel)}
	}
	nodes := []*proto.Object{node("new", `,"tunnel":{"key":"k","port":1}`), node("old", ""), node("bare", `,"tunnel":{"missing":"no tun"}`)}
	for kind, want := range map[string][]string{
		"":          nil,
		"vxlan":     nil,
		"both":      {"old has no WireGuard (its agent is of an earlier version): members on other hosts reach its own in the open", "bare has no WireGuard (no tun): members"},
		"wireguard": {"old has no WireGuard (its agent is of an earlier version): members on other hosts do not reach its own"},
	} {
		var out strings.Builder
		if err := printNodes(&out, nodes, kind); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "WireGuard"); n != 0 && want == nil || n != 2 && want != nil {
			t.Errorf("%q: %d nodes are named:\n%s", kind, n, out.String())
		}
		for _, line := range want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("%q: no %q in\n%s", kind, line, out.String())
			}
		}
	}
}
